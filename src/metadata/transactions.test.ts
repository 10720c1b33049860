// The transition by itself: every state and event that Kafka's coordinator tells apart, with its error codes.
// Codes were taken from answers of Apache Kafka 4.3.
import { describe, expect, it } from 'vitest';
import { ErrorCode } from '../protocol/errors.ts';
import type { StoredOffset } from './groups.ts';
import {
  isPastTimeout,
  MAX_PRODUCER_EPOCH,
  produceFault,
  step,
  type TransactionEvent,
  type TransactionMode,
  type TransactionState,
} from './transactions.ts';

const ID = 'orders';
const NOW = 1_000_000;

/** One transactional id, through events in order. */
class Subject {
  state: TransactionState | undefined;
  nowMs = NOW;
  nextProducerId = 7;

  send(event: TransactionEvent) {
    const { nowMs } = this;
    const newProducerId = () => this.nextProducerId++;
    const result = step(ID, this.state, event, { nowMs, newProducerId });
    if (result.errorCode !== 0) expect(result.next).toBe(this.state);
    this.state = result.next;
    return result;
  }

  get me() {
    const { producerId, producerEpoch } = this.state!;
    return { producerId, producerEpoch };
  }

  init(expected?: { producerId: number; producerEpoch: number }) {
    const known = expected === undefined ? {} : { expected };
    return this.send({ type: 'init', timeoutMs: 60_000, ...known }).errorCode;
  }

  add(partitionIds: number[], by = this.me) {
    return this.send({ type: 'add-partitions', partitionIds, ...by }).errorCode;
  }

  end(committed: boolean, bump: boolean, by = this.me) {
    return this.send({ type: 'end', committed, bump, ...by }).errorCode;
  }

  produce(partitionId: number, mode: TransactionMode, by = this.me) {
    const incarnation = this.state?.incarnation ?? 0;
    return this.send({ type: 'produce', partitionId, incarnation, mode, ...by }).errorCode;
  }

  stage(mode: TransactionMode, by = this.me, groupId = 'g') {
    return this.send({ type: 'stage-offsets', groupId, offsets: [offset(3, 10)], mode, ...by })
      .errorCode;
  }
}

function started(): Subject {
  const subject = new Subject();
  subject.init();
  return subject;
}

function offset(partitionId: number, at: number): StoredOffset {
  return { partitionId, offset: at, leaderEpoch: 0, metadata: '', commitMs: NOW, expireMs: -1 };
}

const older = ({ me }: Subject) => ({ ...me, producerEpoch: me.producerEpoch - 1 });

describe('an unknown transactional id', () => {
  const by = { producerId: 1, producerEpoch: 0 };
  it.each<TransactionEvent>([
    { type: 'add-partitions', partitionIds: [1], ...by },
    { type: 'add-offsets', groupId: 'g', ...by },
    { type: 'stage-offsets', groupId: 'g', offsets: [], mode: 'implicit', ...by },
    { type: 'end', committed: true, bump: true, ...by },
    { type: 'time-out' },
    { type: 'abort', ...by },
    { type: 'expire', unusedSinceMs: NOW },
  ])('$type is INVALID_PRODUCER_ID_MAPPING', (event) => {
    const { errorCode, next } = new Subject().send(event);
    expect(errorCode).toBe(ErrorCode.INVALID_PRODUCER_ID_MAPPING);
    expect(next).toBeUndefined();
  });
});

describe('init', () => {
  it('gives a new id a producer id and epoch 0, then an epoch each time', () => {
    const subject = started();
    expect(subject.me).toEqual({ producerId: 7, producerEpoch: 0 });
    expect(subject.init()).toBe(0);
    expect(subject.me).toEqual({ producerId: 7, producerEpoch: 1 });
    expect(subject.state).toMatchObject({ status: 'Empty', startMs: -1 });
  });

  it('takes a new id even if the caller names an identity', () => {
    const subject = new Subject();
    expect(subject.init({ producerId: 99, producerEpoch: 4 })).toBe(0);
    expect(subject.me).toEqual({ producerId: 7, producerEpoch: 0 });
  });

  it('aborts what was open, under an epoch that fences its producer', () => {
    const subject = started();
    subject.add([1, 2]);
    const { ended } = subject.send({ type: 'init', timeoutMs: 5 });
    expect(ended).toMatchObject({ committed: false, producerId: 7, markerEpoch: 1 });
    expect([...ended!.partitions]).toEqual([1, 2]);
    expect(subject.state).toMatchObject({ status: 'Empty', producerEpoch: 1, timeoutMs: 5 });
  });

  it('bumps the identity that the caller holds, and repeats the answer when asked again', () => {
    const subject = started();
    const held = subject.me;
    expect(subject.init(held)).toBe(0);
    expect(subject.me.producerEpoch).toBe(1);
    const { incarnation } = subject.state!;
    expect(subject.init(held)).toBe(0);
    expect(subject.me.producerEpoch).toBe(1);
    expect(subject.state!.incarnation).toBe(incarnation);
  });

  it.each([
    ['an epoch above', { producerId: 7, producerEpoch: 9 }],
    ['another producer id', { producerId: 8, producerEpoch: 0 }],
  ])('fences %s', (_what, expected) => {
    expect(started().init(expected)).toBe(ErrorCode.PRODUCER_FENCED);
  });

  it('fences a zombie without touching the transaction of its successor', () => {
    const subject = started();
    const zombie = subject.me;
    subject.init();
    subject.add([1]);
    expect(subject.init(zombie)).toBe(ErrorCode.PRODUCER_FENCED);
    expect(subject.state!.status).toBe('Ongoing');
  });

  it('aborts and bumps for the holder of an open transaction', () => {
    const subject = started();
    subject.add([1]);
    expect(subject.init(subject.me)).toBe(0);
    expect(subject.state).toMatchObject({ status: 'Empty', producerEpoch: 1 });
  });

  it('takes a new producer id when the epochs have run out, the former one may ask again', () => {
    const subject = started();
    subject.state = { ...subject.state!, producerEpoch: MAX_PRODUCER_EPOCH };
    const held = subject.me;
    expect(subject.init(held)).toBe(0);
    expect(subject.me).toEqual({ producerId: 8, producerEpoch: 0 });
    expect(subject.init(held)).toBe(0);
    expect(subject.me).toEqual({ producerId: 8, producerEpoch: 0 });
    expect(subject.add([1], held)).toBe(ErrorCode.INVALID_PRODUCER_ID_MAPPING);
  });
});

describe('partitions and offsets', () => {
  it('begin a transaction, once', () => {
    const subject = started();
    expect(subject.add([1])).toBe(0);
    subject.nowMs += 10;
    expect(subject.add([2])).toBe(0);
    expect(subject.state).toMatchObject({ status: 'Ongoing', startMs: NOW, updateMs: NOW + 10 });
    const before = subject.state;
    expect(subject.add([1, 2])).toBe(0);
    expect(subject.state).toBe(before);
  });

  it('begin one without partitions too, as in Kafka', () => {
    const subject = started();
    expect(subject.add([])).toBe(0);
    expect(subject.state!.status).toBe('Ongoing');
  });

  it.each<[string, (s: Subject, by: Subject['me']) => number]>([
    ['add-partitions', (s, by) => s.add([1], by)],
    ['add-offsets', (s, by) => s.send({ type: 'add-offsets', groupId: 'g', ...by }).errorCode],
    ['stage-offsets', (s, by) => s.stage('implicit', by)],
  ])('%s needs the present identity', (_name, send) => {
    const subject = started();
    subject.init();
    const { producerId, producerEpoch } = subject.me;
    expect(send(subject, { producerId: 99, producerEpoch })).toBe(
      ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    );
    for (const other of [producerEpoch - 1, producerEpoch + 1]) {
      expect(send(subject, { producerId, producerEpoch: other })).toBe(ErrorCode.PRODUCER_FENCED);
    }
  });

  it.each<[TransactionMode, number]>([
    ['verify', ErrorCode.INVALID_TXN_STATE],
    ['verify-abortable', ErrorCode.TRANSACTION_ABORTABLE],
    ['implicit', 0],
  ])('offsets of a group that was not announced, %s', (mode, code) => {
    expect(started().stage(mode)).toBe(code);
  });

  it('staged again replace the former ones and are handed out by a commit only', () => {
    const subject = started();
    subject.send({ type: 'add-offsets', groupId: 'g', ...subject.me });
    expect(subject.stage('verify')).toBe(0);
    subject.send({
      type: 'stage-offsets',
      groupId: 'g',
      offsets: [offset(3, 11), offset(4, 5)],
      mode: 'verify',
      ...subject.me,
    });
    const staged = subject.state!;
    const { ended } = subject.send({ type: 'end', committed: true, bump: false, ...subject.me });
    expect([...ended!.offsets.get('g')!.values()].map((row) => row.offset)).toEqual([11, 5]);
    subject.state = staged;
    const aborted = subject.send({ type: 'end', committed: false, bump: false, ...subject.me });
    expect(aborted.ended!.offsets.size).toBe(0);
    expect(subject.state!.offsets.size).toBe(0);
  });
});

describe('batches', () => {
  it.each<[TransactionMode, number]>([
    ['verify', ErrorCode.INVALID_TXN_STATE],
    ['verify-abortable', ErrorCode.TRANSACTION_ABORTABLE],
    ['implicit', 0],
  ])('to a partition outside, %s', (mode, code) => {
    const subject = started();
    expect(subject.produce(1, mode)).toBe(code);
    expect(subject.state!.status).toBe(code === 0 ? 'Ongoing' : 'Empty');
  });

  it('are refused by epoch with INVALID_PRODUCER_EPOCH, by id with INVALID_PRODUCER_ID_MAPPING', () => {
    const subject = started();
    subject.init();
    const { producerId, producerEpoch } = subject.me;
    for (const other of [producerEpoch - 1, producerEpoch + 1]) {
      expect(subject.produce(1, 'implicit', { producerId, producerEpoch: other })).toBe(
        ErrorCode.INVALID_PRODUCER_EPOCH,
      );
    }
    expect(subject.produce(1, 'implicit', { producerId: 99, producerEpoch })).toBe(
      ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    );
  });

  it('admitted before the end never land after it, the epoch unchanged (L6)', () => {
    const subject = started();
    subject.add([1]);
    const { incarnation } = subject.state!;
    const batch = { ...subject.me, partitionId: 1, incarnation, mode: 'verify' } as const;
    expect(produceFault(subject.state, batch)).toBe(0);
    subject.end(true, false);
    expect(produceFault(subject.state, batch)).toBe(ErrorCode.INVALID_TXN_STATE);
    // Not even in the producer's next transaction with the same partition.
    subject.add([1]);
    expect(produceFault(subject.state, batch)).toBe(ErrorCode.INVALID_TXN_STATE);
    expect(produceFault(subject.state, { ...batch, mode: 'implicit' })).toBe(
      ErrorCode.TRANSACTION_ABORTABLE,
    );
  });
});

describe('the end by old clients', () => {
  it('keeps the epoch, and a repeated one finds its outcome', () => {
    const subject = started();
    subject.add([1]);
    const first = subject.send({ type: 'end', committed: true, bump: false, ...subject.me });
    expect(first.ended).toMatchObject({ committed: true, markerEpoch: 0 });
    expect(subject.me.producerEpoch).toBe(0);
    const again = subject.send({ type: 'end', committed: true, bump: false, ...subject.me });
    expect(again).toMatchObject({ errorCode: 0 });
    expect(again.ended).toBeUndefined();
    expect(subject.end(false, false)).toBe(ErrorCode.INVALID_TXN_STATE);
  });

  it('without a transaction is INVALID_TXN_STATE', () => {
    expect(started().end(true, false)).toBe(ErrorCode.INVALID_TXN_STATE);
    expect(started().end(false, false)).toBe(ErrorCode.INVALID_TXN_STATE);
  });

  it('is for the present identity', () => {
    const subject = started();
    subject.init();
    subject.add([1]);
    expect(subject.end(true, false, older(subject))).toBe(ErrorCode.PRODUCER_FENCED);
    expect(subject.end(true, false, { ...subject.me, producerId: 99 })).toBe(
      ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    );
  });
});

describe('the end by KIP-890 clients', () => {
  /** Rows of Kafka's own table: state, how the request's epoch stands to it, commit or abort. */
  it.each<[string, 'retry' | 'current', boolean, number, number]>([
    ['Empty', 'retry', false, ErrorCode.PRODUCER_FENCED, 0],
    ['Empty', 'current', false, 0, 1],
    ['Empty', 'retry', true, ErrorCode.PRODUCER_FENCED, 0],
    ['Empty', 'current', true, ErrorCode.INVALID_TXN_STATE, 0],
    ['CompleteAbort', 'retry', false, 0, 0],
    ['CompleteAbort', 'current', false, 0, 1],
    ['CompleteAbort', 'retry', true, ErrorCode.INVALID_TXN_STATE, 0],
    ['CompleteAbort', 'current', true, ErrorCode.INVALID_TXN_STATE, 0],
    ['CompleteCommit', 'retry', false, ErrorCode.INVALID_TXN_STATE, 0],
    ['CompleteCommit', 'current', false, 0, 1],
    ['CompleteCommit', 'retry', true, 0, 0],
    ['CompleteCommit', 'current', true, ErrorCode.INVALID_TXN_STATE, 0],
  ])('%s, %s epoch, commit %s: %i', (status, epoch, committed, code, bumps) => {
    const subject = started();
    if (status === 'Empty') subject.init();
    else {
      subject.add([1]);
      subject.end(status === 'CompleteCommit', true);
    }
    const before = subject.me.producerEpoch;
    const by = epoch === 'current' ? subject.me : older(subject);
    expect(subject.end(committed, true, by)).toBe(code);
    expect(subject.me.producerEpoch - before).toBe(bumps);
  });

  it('marks partitions with the next epoch and answers it', () => {
    const subject = started();
    subject.produce(1, 'implicit');
    const { ended } = subject.send({ type: 'end', committed: true, bump: true, ...subject.me });
    expect(ended).toMatchObject({ markerEpoch: 1, producerId: 7 });
    expect(subject.me).toEqual({ producerId: 7, producerEpoch: 1 });
    subject.produce(1, 'implicit');
    expect(subject.end(true, true, older(subject))).toBe(ErrorCode.PRODUCER_FENCED);
  });

  it('goes on under a new producer id when the epochs have run out', () => {
    const subject = started();
    subject.state = { ...subject.state!, producerEpoch: MAX_PRODUCER_EPOCH };
    subject.produce(1, 'implicit');
    const held = subject.me;
    const { ended } = subject.send({ type: 'end', committed: true, bump: true, ...held });
    expect(ended).toMatchObject({ markerEpoch: MAX_PRODUCER_EPOCH + 1, producerId: 7 });
    expect(subject.me).toEqual({ producerId: 8, producerEpoch: 0 });
    // The answer was lost.
    expect(subject.end(true, true, held)).toBe(0);
    expect(subject.me).toEqual({ producerId: 8, producerEpoch: 0 });
  });
});

describe('what the broker does by itself', () => {
  it('aborts past the timeout, not before, and fences', () => {
    const subject = started();
    subject.add([1]);
    subject.nowMs += 60_000;
    expect(isPastTimeout(subject.state!, subject.nowMs)).toBe(false);
    expect(subject.send({ type: 'time-out' }).ended).toBeUndefined();
    subject.nowMs += 1;
    expect(subject.send({ type: 'time-out' }).ended).toMatchObject({
      committed: false,
      markerEpoch: 1,
    });
    const late = older(subject);
    expect(subject.state!.status).toBe('CompleteAbort');
    expect(subject.add([1], late)).toBe(ErrorCode.PRODUCER_FENCED);
    expect(subject.produce(1, 'implicit', late)).toBe(ErrorCode.INVALID_PRODUCER_EPOCH);
    expect(subject.end(false, false, late)).toBe(ErrorCode.PRODUCER_FENCED);
    expect(subject.end(true, true, late)).toBe(ErrorCode.INVALID_TXN_STATE);
    // A KIP-890 client that aborts gets what it wants, and its new epoch.
    expect(subject.end(false, true, late)).toBe(0);
    expect(subject.me.producerEpoch).toBe(1);
    expect(subject.init(late)).toBe(0);
  });

  it('aborts for an operator by producer id, whole', () => {
    const subject = started();
    subject.add([1, 2]);
    const by = subject.me;
    expect(subject.send({ type: 'abort', ...by, producerId: 99 }).errorCode).toBe(
      ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    );
    const { ended } = subject.send({ type: 'abort', ...by });
    expect([...ended!.partitions]).toEqual([1, 2]);
    // Again: nothing is open, so it is done.
    expect(subject.send({ type: 'abort', ...by })).toMatchObject({ errorCode: 0 });
    subject.add([3]);
    expect(subject.send({ type: 'abort', ...by }).errorCode).toBe(ErrorCode.INVALID_PRODUCER_EPOCH);
    expect(subject.send({ type: 'abort', ...by, producerEpoch: -1 }).ended).toBeDefined();
  });

  it('forgets ids that were not used, never an open transaction', () => {
    const subject = started();
    subject.send({ type: 'expire', unusedSinceMs: NOW - 1 });
    expect(subject.state!.status).toBe('Empty');
    subject.add([1]);
    subject.send({ type: 'expire', unusedSinceMs: NOW });
    expect(subject.state!.status).toBe('Ongoing');
    subject.end(true, true);
    subject.send({ type: 'expire', unusedSinceMs: NOW });
    expect(subject.state!.status).toBe('Dead');
  });
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { allocateColumns } from './batch-columns.ts';
import { decide, type LogState, type PartitionTail } from './decide.ts';
import {
  eachProducerBatch,
  packExceptions,
  packProducers,
  packRuns,
  recallOutcome,
} from './flush-outcome.ts';
import { describeEntries, endOffset } from './packed-index.ts';
import { appendSequence, newSequences, type Sequences } from './sequences.ts';
import { type TestBatch, testColumns } from './test-batches.ts';

const MAX = 2 ** 31 - 1;

/** Outside of transactions. */
type PlainBatch = Required<Omit<TestBatch, 'transaction'>>;

/** The naive model: every accepted batch of a (partition, producer) for ever, one at a time, no columns. */
class Model {
  readonly ends = new Map<number, number>();
  readonly history = new Map<
    string,
    { epoch: number; first: number; last: number; offset: number }[]
  >();
  readonly young: ReadonlySet<number>;

  constructor(partitions: readonly number[], young: readonly number[]) {
    for (const p of partitions) this.ends.set(p, 0);
    this.young = new Set(young);
  }

  send(batch: PlainBatch): readonly [code: number, offset: number, duplicate: boolean] {
    const end = this.ends.get(batch.partitionId);
    if (end === undefined) return [3, -1, false];
    const accept = () => {
      this.ends.set(batch.partitionId, end + batch.records);
      return [0, end, false] as const;
    };
    if (batch.producerId < 0) return accept();
    const key = `${batch.partitionId}/${batch.producerId}`;
    const all = this.history.get(key) ?? [];
    const epoch = all.at(-1)?.epoch ?? -1;
    const last = Number((BigInt(batch.sequence) + BigInt(batch.records - 1)) % 2n ** 31n);
    const five = all.filter((b) => b.epoch === epoch).slice(-5);
    const same = five.find((b) => b.first === batch.sequence && b.last === last);
    if (same !== undefined && batch.epoch === epoch) return [0, same.offset, true];
    if (all.length === 0) {
      if (batch.sequence !== 0 && this.young.has(batch.producerId)) return [45, -1, false];
    } else if (batch.epoch < epoch) return [47, -1, false];
    else if (
      batch.epoch > epoch
        ? batch.sequence !== 0
        : batch.sequence !== (five.at(-1)!.last + 1) % 2 ** 31
    )
      return [45, -1, false];
    this.history.set(key, [
      ...all,
      { epoch: batch.epoch, first: batch.sequence, last, offset: end },
    ]);
    return accept();
  }
}

/** A store that keeps what decisions changed. */
class Kept implements LogState {
  readonly tails = new Map<number, PartitionTail>();
  readonly states = new Map<string, Sequences>();
  readonly young: ReadonlySet<number>;

  constructor(partitions: readonly number[], young: readonly number[]) {
    for (const p of partitions) this.tails.set(p, { nextOffset: 0, maxTimestamp: -1 });
    this.young = new Set(young);
  }
  partition(partitionId: number) {
    return this.tails.get(partitionId);
  }
  sequences(partitionId: number, producerId: number) {
    return this.states.get(`${partitionId}/${producerId}`);
  }
  mayHaveExpired(producerId: number) {
    return !this.young.has(producerId);
  }
  transaction() {
    return undefined;
  }
}

// Few values, so that chains, duplicates, gaps, epochs and the wrap all happen often.
const batch = fc.record({
  partitionId: fc.constantFrom(1, 2, 9),
  records: fc.constantFrom(1, 2, 3),
  producerId: fc.constantFrom(-1, 5, 6, 7),
  epoch: fc.constantFrom(0, 0, 0, 1, 2),
  // Relative to what the producer would send next: 0 continues, negative resends, positive leaves a gap.
  step: fc.constantFrom(0, 0, 0, 0, -1, -2, -6, 1, 'zero' as const, 'wrap' as const),
  maxTimestamp: fc.integer({ min: -1, max: 50 }),
});

type Drawn = typeof batch extends fc.Arbitrary<infer T> ? T : never;

/** Turns relative steps into sequences by what this sender has sent so far, whatever became of it. */
function sequencesOf(flushes: readonly (readonly Drawn[])[]): PlainBatch[][] {
  const sent = new Map<string, { first: number; records: number }[]>();
  return flushes.map((flush) =>
    flush.map(({ step, ...drawn }) => {
      const key = `${drawn.partitionId}/${drawn.producerId}`;
      const before = sent.get(key) ?? [];
      const last = before.at(-1);
      const next = last === undefined ? 0 : (last.first + last.records) % 2 ** 31;
      if (typeof step === 'number' && step < 0 && before.length >= -step)
        return { ...drawn, ...before.at(step)!, sequence: before.at(step)!.first };
      const sequence = step === 'zero' ? 0 : step === 'wrap' ? MAX - 1 : next + Math.max(0, step);
      sent.set(key, [...before, { first: sequence, records: drawn.records }]);
      return { ...drawn, sequence: sequence % 2 ** 31 };
    }),
  );
}

test('decide agrees with a naive model, flush by flush (L2, L4, L5)', () => {
  fc.assert(
    fc.property(fc.array(fc.array(batch, { maxLength: 12 }), { maxLength: 12 }), (drawn) => {
      const model = new Model([1, 2], [5, 6]);
      const kept = new Kept([1, 2], [5, 6]);
      for (const flush of sequencesOf(drawn)) {
        const columns = testColumns(flush);
        const decision = decide(kept, columns, 77);
        // The model sees each partition's batches in order of admission; partitions don't touch each other.
        const expected = flush.map((b) => model.send(b));
        expect([...decision.errorCodes]).toEqual(expected.map((e) => e[0]));
        expect([...decision.baseOffsets]).toEqual(expected.map((e) => e[1]));
        expect([...decision.duplicates].map(Boolean)).toEqual(expected.map((e) => e[2]));
        checkStored(kept, columns, decision);
      }
      expect(new Map([...kept.tails].map(([p, t]) => [p, t.nextOffset]))).toEqual(model.ends);
    }),
    { seed: 20_261_129, numRuns: 600 },
  );
});

/** The stored forms give back the outcome, the state, and an index that covers exactly the accepted batches. */
function checkStored(
  kept: Kept,
  columns: ReturnType<typeof testColumns>,
  decision: ReturnType<typeof decide>,
) {
  const index = packRuns(columns, decision);
  const recalled = recallOutcome(columns, index, packExceptions(decision));
  expect(recalled.errorCodes).toEqual(decision.errorCodes);
  expect(recalled.baseOffsets).toEqual(decision.baseOffsets);
  expect(recalled.duplicates).toEqual(decision.duplicates);
  const replayed = new Map<string, Sequences>();
  eachProducerBatch(packProducers(columns, decision), 77, (partitionId, producerId, accepted) => {
    const key = `${partitionId}/${producerId}`;
    const state = replayed.get(key) ?? kept.states.get(key)?.slice() ?? newSequences();
    appendSequence(state, accepted);
    replayed.set(key, state);
  });
  for (const [partitionId, producers] of decision.sequences)
    for (const [producerId, state] of producers)
      kept.states.set(`${partitionId}/${producerId}`, state);
  for (const [key, state] of replayed) expect(kept.states.get(key)).toEqual(state);
  for (let n = 0; n < index.count; n += 1) {
    const partitionId = index.partitionIds[n]!;
    const tail = kept.tails.get(partitionId)!;
    expect(index.baseOffsets[n]).toBe(tail.nextOffset);
    expect(index.maxTimestamps[n]).toBeGreaterThanOrEqual(tail.maxTimestamp);
    kept.tails.set(partitionId, {
      nextOffset: endOffset(index, n),
      maxTimestamp: index.maxTimestamps[n]!,
    });
  }
  for (const [partitionId, tail] of decision.partitions)
    expect(kept.tails.get(partitionId)).toEqual(tail);
  const bytes = describeEntries(index).reduce((sum, entry) => sum + entry.length, 0);
  let accepted = 0;
  for (let n = 0; n < columns.count; n += 1)
    if (decision.errorCodes[n] === 0 && decision.duplicates[n] === 0)
      accepted += columns.lengths[n]!;
  expect(bytes).toBe(accepted);
}

test('a sequence chain wraps from 2^31−1 to 0', () => {
  const kept = new Kept([1], []);
  const send = (sequence: number, records: number) =>
    decide(kept, testColumns([{ partitionId: 1, producerId: 5, sequence, records }]), 1);
  const first = send(MAX - 1, 2);
  expect(first.errorCodes[0]).toBe(0);
  kept.states.set('1/5', first.sequences.get(1)!.get(5)!);
  expect(send(0, 1).errorCodes[0]).toBe(0);
  expect(send(1, 1).errorCodes[0]).toBe(45);
  kept.states.set('1/5', newSequences());
});

test('a batch that spans the wrap is a duplicate of itself', () => {
  const kept = new Kept([1], []);
  const columns = testColumns([
    { partitionId: 1, producerId: 5, sequence: MAX, records: 3 },
    { partitionId: 1, producerId: 5, sequence: MAX, records: 3 },
    { partitionId: 1, producerId: 5, sequence: 2, records: 1 },
  ]);
  const decision = decide(kept, columns, 1);
  expect([...decision.errorCodes]).toEqual([0, 0, 0]);
  expect([...decision.duplicates]).toEqual([0, 1, 0]);
  expect([...decision.baseOffsets]).toEqual([0, 0, 3]);
});

test('a run ends where a refused batch lies between', () => {
  const kept = new Kept([1], [5]);
  const columns = testColumns([
    { partitionId: 1, records: 2 },
    { partitionId: 1, producerId: 5, sequence: 4 },
    { partitionId: 1, records: 1 },
    { partitionId: 1, records: 1 },
  ]);
  const decision = decide(kept, columns, 1);
  expect(describeEntries(packRuns(columns, decision))).toMatchObject([
    { baseOffset: 0, endOffset: 2, position: 0, length: 200, batchCount: 1 },
    { baseOffset: 2, endOffset: 4, position: 300, length: 200, batchCount: 2 },
  ]);
});

test('an empty flush decides nothing', () => {
  const decision = decide(new Kept([1], []), allocateColumns(0), 1);
  expect(decision.partitions.size).toBe(0);
});

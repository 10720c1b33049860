// All transactional ids of this broker: takes requests to the store, which runs the state machine, and keeps a mirror
// for what must not wait. Aborts transactions past their timeout, forgets ids that were not used for long. See SPEC.md.
// Not for: wire messages (handlers/), the rules themselves (metadata/transactions.ts), markers (the log).
import type { Clock, Timer } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Component } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { StoredOffset } from '../../metadata/groups.ts';
import {
  type Producer,
  produceFault,
  type TransactionAdmission,
  type TransactionEvent,
  type TransactionMode,
  type TransactionOutcome,
  type TransactionState,
  type TransactionsMetadata,
} from '../../metadata/transactions.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import type { PendingOffsets, TransactionalGroups } from './groups.ts';
import { TransactionMirror } from './mirror.ts';
import type { TransactionSettings } from './settings.ts';
import { TransactionWriter } from './writer.ts';

export interface TransactionCoordinatorOptions {
  readonly metadata: TransactionsMetadata;
  readonly groups: TransactionalGroups;
  readonly settings: TransactionSettings;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** An identity, or the error code that says why there is none. */
export interface IdentityReply extends Producer {
  readonly errorCode: number;
}

/** The request of a batch to be admitted to a transaction. */
export interface AdmissionRequest extends Producer {
  readonly transactionalId: string;
  readonly partitionId: number;
  readonly mode: TransactionMode;
}

export class TransactionCoordinator implements Component, PendingOffsets {
  readonly #options: TransactionCoordinatorOptions;
  readonly #writer: TransactionWriter;
  readonly #mirror = new TransactionMirror();
  readonly #timers = new Set<Timer>();
  #open = { count: 0, oldestStartMs: -1 };
  #stopped = false;

  private constructor(options: TransactionCoordinatorOptions) {
    this.#options = options;
    this.#writer = new TransactionWriter(options.metadata, () => options.clock.now());
    this.#observe();
  }

  /** Learns all transactional ids; open transactions go on, and time out by when they began. */
  static async load(options: TransactionCoordinatorOptions): Promise<TransactionCoordinator> {
    const coordinator = new TransactionCoordinator(options);
    for (const state of await options.metadata.load())
      coordinator.#mirror.keep(state.transactionalId, state);
    const { settings } = options;
    coordinator.#repeat(
      settings['transaction.abort.timed.out.transaction.cleanup.interval.ms'],
      () => coordinator.#abortPastTimeout(),
    );
    coordinator.#repeat(
      settings['transaction.remove.expired.transaction.cleanup.interval.ms'],
      () => coordinator.#forgetUnused(),
    );
    return coordinator;
  }

  /** InitProducerId with a transactional id; `expected` is the caller's present identity (KIP-360). */
  async initProducerId(
    transactionalId: string,
    request: { readonly timeoutMs: number; readonly expected?: Producer },
  ): Promise<IdentityReply> {
    const fault = this.#initFault(transactionalId, request.timeoutMs);
    if (fault !== ErrorCode.NONE) return refusal(fault);
    return this.#identity(await this.#step(transactionalId, { type: 'init', ...request }));
  }

  /** Returns an error code. */
  async addPartitions(
    transactionalId: string,
    producer: Producer,
    partitionIds: readonly number[],
  ): Promise<number> {
    const event = { type: 'add-partitions', ...identityOf(producer), partitionIds } as const;
    return codeOf(await this.#step(transactionalId, event));
  }

  /** Says of each partition whether it is in the open transaction (AddPartitionsToTxn v4+, verify only). */
  async verifyPartitions(
    transactionalId: string,
    producer: Producer,
    partitionIds: readonly number[],
  ): Promise<readonly number[]> {
    const states = transactionalId === '' ? [] : await this.describe([transactionalId]);
    const state = states[0];
    const fault = verifyFault(transactionalId, state, producer);
    return partitionIds.map((partitionId) => {
      if (fault !== ErrorCode.NONE) return fault;
      return state!.partitions.has(partitionId) ? ErrorCode.NONE : ErrorCode.TRANSACTION_ABORTABLE;
    });
  }

  /** Announces a group whose offsets will be staged. Returns an error code. */
  async addOffsets(transactionalId: string, producer: Producer, groupId: string): Promise<number> {
    if (!this.#mayAddGroup(transactionalId, groupId)) return ErrorCode.INVALID_REQUEST;
    const event = { type: 'add-offsets', ...identityOf(producer), groupId } as const;
    return codeOf(await this.#step(transactionalId, event));
  }

  /** Stages offsets until the end of the transaction. The group has been asked. Returns an error code for all. */
  async stageOffsets(
    transactionalId: string,
    producer: Producer,
    staged: {
      readonly groupId: string;
      readonly offsets: readonly StoredOffset[];
      readonly mode: TransactionMode;
    },
  ): Promise<number> {
    if (!this.#mayAddGroup(transactionalId, staged.groupId)) return ErrorCode.INVALID_REQUEST;
    const event = { type: 'stage-offsets', ...identityOf(producer), ...staged } as const;
    const partitionIds = staged.offsets.map(({ partitionId }) => partitionId);
    const staging = this.#mirror.staging(transactionalId, staged.groupId, partitionIds);
    const code = codeOf(await this.#step(transactionalId, event));
    this.#mirror.staged(transactionalId, staging);
    // Group commits know no PRODUCER_FENCED: a fenced batch's code stands for it, as in Kafka.
    return code === ErrorCode.PRODUCER_FENCED ? ErrorCode.INVALID_PRODUCER_EPOCH : code;
  }

  /** EndTxn; with `bump` (v5+) the reply holds the identity to go on with. */
  async end(
    transactionalId: string,
    producer: Producer,
    how: { readonly committed: boolean; readonly bump: boolean },
  ): Promise<IdentityReply> {
    const event = { type: 'end', ...identityOf(producer), ...how } as const;
    return this.#identity(await this.#step(transactionalId, event));
  }

  /**
   * Aborts what a producer has open, whole, and fences it (WriteTxnMarkers of an operator). Nothing open is success.
   * Returns an error code.
   */
  async abort(producer: Producer): Promise<number> {
    const state = this.#mirror.byProducer(producer.producerId);
    if (state === undefined) return ErrorCode.NONE;
    const event = { type: 'abort', ...identityOf(producer) } as const;
    return codeOf(await this.#step(state.transactionalId, event));
  }

  /** What a batch of a transaction takes along to its commit, or the error code that refuses it. Never waits. */
  admit(request: AdmissionRequest): TransactionAdmission | number {
    const { transactionalId, mode } = request;
    if (transactionalId === '') return ErrorCode.INVALID_REQUEST;
    if (this.#stopped || this.#mirror.isUnsure(transactionalId))
      return ErrorCode.NOT_ENOUGH_REPLICAS;
    const state = this.#mirror.get(transactionalId);
    const incarnation = state?.incarnation ?? -1;
    const { producerId, producerEpoch, partitionId } = request;
    const batch = { producerId, producerEpoch, partitionId, incarnation, mode };
    const fault = produceFault(state, batch);
    return fault === ErrorCode.NONE ? { incarnation, mode } : fault;
  }

  forgetGroup(groupId: string): void {
    this.#mirror.forgetGroup(groupId);
  }

  hasPendingOffset(groupId: string, partitionId: number): boolean {
    return this.#mirror.hasPendingOffset(groupId, partitionId);
  }

  /** The group's answer to TxnOffsetCommit; offsets may be staged on 0. */
  get groups(): TransactionalGroups {
    return this.#options.groups;
  }

  /** Present states from the store, in order of ids. @throws FloeError */
  describe(
    transactionalIds: readonly string[],
  ): Promise<readonly (TransactionState | undefined)[]> {
    return this.#options.metadata.describe(transactionalIds);
  }

  /** All states from the store. @throws FloeError */
  list(): Promise<readonly TransactionState[]> {
    return this.#options.metadata.load();
  }

  /** Active producers by partition. @throws FloeError */
  describeProducers(partitionIds: readonly number[]) {
    return this.#options.metadata.describeProducers(partitionIds);
  }

  /** Takes no more requests (NOT_COORDINATOR), finishes those under way. Open transactions stay open. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    await this.#writer.idle();
  }

  #initFault(transactionalId: string, timeoutMs: number): number {
    const { settings } = this.#options;
    if (transactionalId === '' || transactionalId.length > MAX_TRANSACTIONAL_ID_LENGTH)
      return ErrorCode.INVALID_REQUEST;
    if (timeoutMs <= 0 || timeoutMs > settings['transaction.max.timeout.ms'])
      return ErrorCode.INVALID_TRANSACTION_TIMEOUT;
    const isKnown = this.#mirror.get(transactionalId) !== undefined;
    return isKnown || this.#mirror.size < settings['transactional.id.max.count']
      ? ErrorCode.NONE
      : ErrorCode.POLICY_VIOLATION;
  }

  #mayAddGroup(transactionalId: string, groupId: string): boolean {
    const offsets = this.#mirror.get(transactionalId)?.offsets;
    const limit = this.#options.settings['transaction.max.groups'];
    return offsets === undefined || offsets.has(groupId) || offsets.size < limit;
  }

  /** One event through the store, its outcome taken over before anybody else hears of it. */
  async #step(transactionalId: string, event: TransactionEvent): Promise<TransactionOutcome> {
    if (transactionalId === '') return failed(ErrorCode.INVALID_REQUEST);
    if (this.#stopped) return failed(ErrorCode.NOT_COORDINATOR);
    const result = await this.#writer.write({ transactionalId, event });
    if (!(result instanceof FloeError)) {
      this.#adopt(transactionalId, result);
      if (result.ended !== undefined) this.#countEnd(event, result.ended.committed);
      return result;
    }
    this.#doubt(transactionalId, result);
    return failed(ErrorCode.COORDINATOR_NOT_AVAILABLE);
  }

  #adopt(transactionalId: string, { state, applied }: TransactionOutcome): void {
    const before = this.#mirror.get(transactionalId);
    const wasUnsure = this.#mirror.isUnsure(transactionalId);
    this.#mirror.keep(transactionalId, state);
    // An end whose answer was lost has put into the groups what was staged before it.
    const late = wasUnsure && before !== undefined && isCommitOf(before, state);
    const offsets = applied ?? (late ? before.offsets : []);
    for (const [groupId, byPartition] of offsets) {
      if (byPartition.size > 0) this.#options.groups.offsetsApplied(groupId, byPartition);
    }
  }

  #doubt(transactionalId: string, error: FloeError): void {
    this.#mirror.doubt(transactionalId);
    this.#options.logger.warn(
      { transactionalId, code: error.code, error: error.message },
      'could not store a transaction',
    );
  }

  #identity({ errorCode, state }: TransactionOutcome): IdentityReply {
    if (errorCode !== ErrorCode.NONE || state === undefined) return refusal(errorCode);
    const { producerId, producerEpoch } = state;
    return { errorCode, producerId, producerEpoch };
  }

  #repeat(everyMs: number, work: () => Promise<void>): void {
    const timer = this.#options.clock.setTimer(everyMs, () => {
      this.#timers.delete(timer);
      void work()
        .catch((caught: unknown) => this.#warn(FloeError.from(caught)))
        .finally(() => {
          if (!this.#stopped) this.#repeat(everyMs, work);
        });
    });
    this.#timers.add(timer);
  }

  async #abortPastTimeout(): Promise<void> {
    if (this.#mirror.size === 0) return;
    await this.#resolveDoubts();
    const nowMs = this.#options.clock.now();
    const open = await this.#options.metadata.open(nowMs, MAX_TIMEOUTS);
    this.#open = open;
    await Promise.all(
      open.pastTimeout.map(async (transactionalId) => {
        const { ended } = await this.#step(transactionalId, { type: 'time-out' });
        if (ended !== undefined)
          this.#options.logger.info(
            { transactionalId, producerId: ended.producerId, openMs: nowMs - ended.startMs },
            'aborted a transaction past its timeout',
          );
      }),
    );
  }

  /** Asks the store about ids whose latest change nobody could confirm. */
  async #resolveDoubts(): Promise<void> {
    const unsure = this.#mirror.unsureIds();
    if (unsure.length === 0) return;
    const states = await this.#options.metadata.describe(unsure.map(([id]) => id));
    for (const [n, [transactionalId, doubt]] of unsure.entries()) {
      if (this.#mirror.isInDoubt(transactionalId, doubt))
        this.#adopt(transactionalId, { errorCode: 0, state: states[n] });
    }
  }

  async #forgetUnused(): Promise<void> {
    const { clock, metadata, settings } = this.#options;
    const unusedSinceMs = clock.now() - settings['transactional.id.expiration.ms'];
    for (;;) {
      const ids = await metadata.unused(unusedSinceMs, MAX_EXPIRED);
      const event = { type: 'expire', unusedSinceMs } as const;
      const outcomes = await Promise.all(ids.map((id) => this.#step(id, event)));
      const gone = outcomes.filter(({ state }) => state?.status === 'Dead').length;
      if (ids.length < MAX_EXPIRED || gone === 0) return;
    }
  }

  #countEnd({ type }: TransactionEvent, committed: boolean): void {
    const reason = committed ? 'commit' : (ABORT_REASONS[type] ?? 'abort');
    this.#options.metrics.count(
      'floe_transactions_ended_total',
      'Transactions that ended, by how: commit, abort by the client, timeout, fenced by a new producer, or operator',
      { reason },
    );
  }

  #observe(): void {
    const { metrics, clock } = this.#options;
    metrics.observeGauge(
      'floe_transactional_ids',
      'Transactional ids known to this broker',
      () => this.#mirror.size,
    );
    metrics.observeGauge(
      'floe_transactions_open',
      'Open transactions when last looked at',
      () => this.#open.count,
    );
    metrics.observeGauge(
      'floe_transaction_oldest_seconds',
      'Age of the oldest open transaction: what holds back readers of committed records',
      () => (this.#open.count === 0 ? 0 : (clock.now() - this.#open.oldestStartMs) / 1_000),
    );
  }

  #warn(error: FloeError): void {
    this.#options.logger.warn(
      { code: error.code, error: error.message },
      'could not look after transactions',
    );
  }
}

/** Kafka has no limit, but an id is kept in memory and in the store for as long as it is used. */
const MAX_TRANSACTIONAL_ID_LENGTH = 1_024;
/** Timeouts handled at a time; the next look takes the rest. */
const MAX_TIMEOUTS = 1_000;
/** Ids forgotten in one metadata transaction. */
const MAX_EXPIRED = 500;

const ABORT_REASONS: Partial<Record<TransactionEvent['type'], string>> = {
  'time-out': 'timeout',
  init: 'fenced',
  abort: 'operator',
};

const codeOf = ({ errorCode }: TransactionOutcome): number => errorCode;
const identityOf = ({ producerId, producerEpoch }: Producer): Producer => ({
  producerId,
  producerEpoch,
});
const refusal = (errorCode: number): IdentityReply => ({
  errorCode,
  producerId: -1,
  producerEpoch: -1,
});
const failed = (errorCode: number): TransactionOutcome => ({ errorCode, state: undefined });

/** True when `after` can only come of the commit of the transaction that was open in `before`. */
function isCommitOf(before: TransactionState, after: TransactionState | undefined): boolean {
  return (
    before.status === 'Ongoing' &&
    after?.status === 'CompleteCommit' &&
    after.incarnation === before.incarnation + 1
  );
}

function verifyFault(
  transactionalId: string,
  state: TransactionState | undefined,
  { producerId, producerEpoch }: Producer,
): number {
  if (transactionalId === '') return ErrorCode.INVALID_REQUEST;
  if (state === undefined || state.producerId !== producerId)
    return ErrorCode.INVALID_PRODUCER_ID_MAPPING;
  return state.producerEpoch === producerEpoch ? ErrorCode.NONE : ErrorCode.PRODUCER_FENCED;
}

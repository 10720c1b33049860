// The transactional ids that this node coordinates, by shards that come and go with their leases: takes requests to the
// store, which runs the state machine, and keeps a mirror for what must not wait. Aborts transactions past their timeout,
// forgets ids that were not used for long. Offsets it stages, and batches it admits, for ids of other nodes too.
// See SPEC.md.
// Not for: wire messages (handlers/), the rules themselves (metadata/transactions.ts), markers (the log).
import type { Clock, Timer } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Component } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Leases } from '../../cluster/cluster.ts';
import type { StoredOffset } from '../../metadata/groups.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import {
  type Producer,
  produceFault,
  type TransactionAdmission,
  type TransactionEvent,
  type TransactionMode,
  type TransactionOutcome,
  type TransactionRequest,
  type TransactionState,
  type TransactionsMetadata,
} from '../../metadata/transactions.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import type { Staged } from '../groups/pending.ts';
import { type HeldShard, numbersOf, Shards } from '../shards.ts';
import { Admissions, type Learnt } from './admission.ts';
import type { TransactionalGroups } from './groups.ts';
import { TransactionMirror } from './mirror.ts';
import type { TransactionSettings } from './settings.ts';
import { TransactionWriter } from './writer.ts';

export interface TransactionCoordinatorOptions {
  readonly metadata: TransactionsMetadata;
  readonly leases: Leases;
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

/** Under which right a request changes a transactional id. */
interface Right {
  /** Undefined: none is needed. */
  readonly lease: LeaseToken | undefined;
  /** Undefined where another node coordinates the id: its outcome is no news for the mirror. */
  readonly seat: HeldShard | undefined;
}

export class TransactionCoordinator implements Component {
  readonly #options: TransactionCoordinatorOptions;
  readonly #writer: TransactionWriter;
  readonly #mirror = new TransactionMirror();
  readonly #shards: Shards;
  readonly #admissions: Admissions;
  readonly #timers = new Set<Timer>();
  #open = { count: 0, oldestStartMs: -1 };
  #stopped = false;

  private constructor(options: TransactionCoordinatorOptions) {
    this.#options = options;
    const { metadata, clock, leases } = options;
    this.#writer = new TransactionWriter(metadata, () => clock.now());
    this.#admissions = new Admissions(metadata);
    this.#shards = new Shards({
      kind: 'transactions',
      leases,
      load: (held) => this.#load(held),
      drop: ({ shard, token }) => {
        this.#writer.drop(token);
        this.#mirror.drop(shard);
      },
      settled: () => this.#writer.settled(),
    });
    this.#observe();
  }

  /** Wants all shards; of those it holds at once the ids are loaded, where nobody else coordinates: all. */
  static async load(options: TransactionCoordinatorOptions): Promise<TransactionCoordinator> {
    const coordinator = new TransactionCoordinator(options);
    await coordinator.#shards.start();
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

  /** Open transactions go on, and time out by when they began. */
  async #load(held: readonly HeldShard[]): Promise<void> {
    const states = await this.#options.metadata.load(numbersOf(held));
    const gone = new Set(held.filter(({ dropped }) => dropped).map(({ shard }) => shard));
    for (const state of states) this.#mirror.keep(state.transactionalId, state);
    for (const shard of gone) this.#mirror.drop(shard);
  }

  /** NOT_COORDINATOR, or that the id is being loaded, when this node can't speak for it now, else 0. */
  faultOf(transactionalId: string): number {
    return this.#shards.faultOf(transactionalId);
  }

  /** Resolves when the id's shard is loaded or given up; undefined where it isn't being loaded. */
  loading(transactionalId: string): Promise<unknown> | undefined {
    return this.#shards.loading(transactionalId);
  }

  /** COORDINATOR_LOAD_IN_PROGRESS while some shard is being loaded: a list would miss its ids. */
  get listFault(): number {
    return this.#shards.isLoading ? ErrorCode.COORDINATOR_LOAD_IN_PROGRESS : 0;
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
    const before =
      transactionalId === '' ? ErrorCode.INVALID_REQUEST : this.faultOf(transactionalId);
    const [state] = before === 0 ? await this.describe([transactionalId]) : [];
    const code = before || this.faultOf(transactionalId) || verifyFault(state, producer);
    return partitionIds.map((partitionId) => {
      if (code !== ErrorCode.NONE) return code;
      return state!.partitions.has(partitionId) ? ErrorCode.NONE : ErrorCode.TRANSACTION_ABORTABLE;
    });
  }

  /** Announces a group whose offsets will be staged. Returns an error code. */
  async addOffsets(transactionalId: string, producer: Producer, groupId: string): Promise<number> {
    const event = {
      type: 'add-offsets',
      ...identityOf(producer),
      groupId,
      ...this.#limits,
    } as const;
    return codeOf(await this.#step(transactionalId, event));
  }

  get #limits() {
    return { maxGroups: this.#options.settings['transaction.max.groups'] };
  }

  /**
   * Stages offsets until the end of the transaction, which another node may coordinate: this one coordinates the group,
   * which has been asked. Returns an error code for all.
   */
  async stageOffsets(
    transactionalId: string,
    producer: Producer,
    staged: {
      readonly groupId: string;
      readonly offsets: readonly StoredOffset[];
      readonly mode: TransactionMode;
    },
  ): Promise<number> {
    const { groups } = this.#options;
    const { groupId, offsets } = staged;
    const lease = groups.stagingLease(groupId);
    if (typeof lease === 'number') return lease;
    const event = {
      type: 'stage-offsets',
      ...identityOf(producer),
      ...staged,
      ...this.#limits,
    } as const;
    const partitionIds = offsets.map(({ partitionId }) => partitionId);
    const staging = groups.pending.begin(transactionalId, groupId, partitionIds);
    const right = { lease, seat: this.#shards.of(transactionalId) };
    const { errorCode } = await this.#change({ transactionalId, event }, right, (outcome) =>
      groups.pending.finish(staging, stagedBy(outcome)),
    );
    const lost = groups.stagingLease(groupId);
    if (lost !== lease) return typeof lost === 'number' ? lost : ErrorCode.NOT_COORDINATOR;
    // Group commits know no PRODUCER_FENCED: a fenced batch's code stands for it, as in Kafka.
    return errorCode === ErrorCode.PRODUCER_FENCED ? ErrorCode.INVALID_PRODUCER_EPOCH : errorCode;
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
   * Aborts what a producer has open, whole, and fences it (WriteTxnMarkers of an operator), whoever coordinates it: the
   * state under its lock decides. Nothing open is success. Returns an error code.
   */
  async abort(producer: Producer): Promise<number> {
    if (this.#stopped) return ErrorCode.NOT_COORDINATOR;
    const state = await this.#options.metadata.byProducer(producer.producerId);
    if (state === undefined) return ErrorCode.NONE;
    const { transactionalId } = state;
    const event = { type: 'abort', ...identityOf(producer) } as const;
    const seat = this.#shards.of(transactionalId);
    return codeOf(await this.#change({ transactionalId, event }, { lease: seat?.token, seat }));
  }

  /**
   * What must be read before a batch can be admitted: undefined where nothing has to be, since this node coordinates the
   * id or has a note of this very epoch. To be asked when the request has arrived.
   */
  learn(
    transactionalId: string,
    producer: Producer,
    mode: TransactionMode,
  ): Promise<Learnt> | undefined {
    if (transactionalId === '' || this.#stopped) return undefined;
    if (this.#shards.of(transactionalId) !== undefined) return undefined;
    if (mode === 'implicit' && this.#admissions.noted(transactionalId, producer) !== undefined)
      return undefined;
    return this.#admissions.learn(transactionalId);
  }

  /**
   * What a batch of a transaction takes along to its commit, or the error code that refuses it. Never waits: of ids that
   * another node coordinates `learnt` says what {@link learn} has found.
   */
  admit(request: AdmissionRequest, learnt?: Learnt): TransactionAdmission | number {
    const { transactionalId, mode } = request;
    if (transactionalId === '') return ErrorCode.INVALID_REQUEST;
    if (this.#stopped || learnt?.kind === 'failed') return ErrorCode.NOT_ENOUGH_REPLICAS;
    if (learnt !== undefined) return this.#admitElsewhere(request, learnt.state);
    if (this.#shards.of(transactionalId) === undefined) {
      const incarnation = this.#admissions.noted(transactionalId, request);
      // The lease may have ended just now.
      return incarnation === undefined || mode !== 'implicit'
        ? ErrorCode.NOT_ENOUGH_REPLICAS
        : { incarnation, mode };
    }
    if (this.#mirror.isUnsure(transactionalId)) return ErrorCode.NOT_ENOUGH_REPLICAS;
    return admission(this.#mirror.get(transactionalId), request);
  }

  #admitElsewhere(
    request: AdmissionRequest,
    state: TransactionState | undefined,
  ): TransactionAdmission | number {
    const admitted = admission(state, request);
    if (state !== undefined && typeof admitted !== 'number' && request.mode === 'implicit')
      this.#admissions.note(request.transactionalId, state);
    return admitted;
  }

  /** A batch of the id was refused at its commit: what was noted of other nodes' ids may be wrong. */
  refusedBatch(transactionalId: string): void {
    this.#admissions.forget(transactionalId);
  }

  /** The group's answer to TxnOffsetCommit; offsets may be staged on 0. */
  get groups(): TransactionalGroups {
    return this.#options.groups;
  }

  /** Present states from the store, in order of ids, whoever coordinates them. @throws FloeError */
  describe(
    transactionalIds: readonly string[],
  ): Promise<readonly (TransactionState | undefined)[]> {
    return this.#options.metadata.describe(transactionalIds);
  }

  /** All states of the shards that this node speaks for, from the store. @throws FloeError */
  async list(): Promise<readonly TransactionState[]> {
    const held = this.#shards.held();
    if (held.length === 0) return [];
    const states = await this.#options.metadata.load(numbersOf(held));
    return states.filter(({ transactionalId }) => this.faultOf(transactionalId) === 0);
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
    this.#shards.close();
    await this.#writer.idle();
    await this.#shards.stop();
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

  /** One event of an id that this node coordinates, its outcome taken over before anybody else hears of it. */
  async #step(transactionalId: string, event: TransactionEvent): Promise<TransactionOutcome> {
    if (transactionalId === '') return failed(ErrorCode.INVALID_REQUEST);
    const seat = this.#stopped ? ErrorCode.NOT_COORDINATOR : this.#shards.find(transactionalId);
    if (typeof seat === 'number') return failed(seat);
    const outcome = await this.#change({ transactionalId, event }, { lease: seat.token, seat });
    const lost = this.#stopped ? 0 : this.#shards.fault(seat);
    return lost === 0 ? outcome : failed(lost);
  }

  /** One event through the store. `told` hears of the outcome in the order of changes, before anybody else. */
  async #change(
    request: TransactionRequest,
    { lease, seat }: Right,
    told: (outcome: TransactionOutcome) => void = () => {},
  ): Promise<TransactionOutcome> {
    const { transactionalId, event } = request;
    if (transactionalId === '') {
      const outcome = failed(ErrorCode.INVALID_REQUEST);
      told(outcome);
      return outcome;
    }
    const result = await this.#writer.write(request, lease);
    const outcome = result instanceof FloeError ? this.#failed(request, result, lease) : result;
    told(outcome);
    if (result instanceof FloeError) return outcome;
    if (seat !== undefined && !seat.dropped) this.#adopt(transactionalId, outcome);
    else if (outcome.ended !== undefined) this.#tell(transactionalId, outcome);
    if (outcome.ended !== undefined) this.#countEnd(event, outcome.ended.committed);
    return outcome;
  }

  #failed(
    { transactionalId }: TransactionRequest,
    error: FloeError,
    lease: LeaseToken | undefined,
  ): TransactionOutcome {
    if (error.code === 'conflict' && lease !== undefined) {
      // Nothing happened, or nobody waits any more: whoever has the lease now knows.
      this.#shards.refused(lease);
      this.#options.groups.leaseRefused(lease);
      return failed(ErrorCode.NOT_COORDINATOR);
    }
    this.#doubt(transactionalId, error);
    return failed(LOST);
  }

  #adopt(transactionalId: string, outcome: TransactionOutcome): void {
    this.#mirror.keep(transactionalId, outcome.state);
    this.#tell(transactionalId, outcome);
  }

  #tell(transactionalId: string, { state, ended, applied }: TransactionOutcome): void {
    const seen = { state, hasEnded: ended !== undefined };
    const offsets = applied === undefined ? {} : { applied };
    this.#options.groups.pending.seen(transactionalId, { ...seen, ...offsets });
  }

  #doubt(transactionalId: string, error: FloeError): void {
    if (this.#shards.of(transactionalId) !== undefined) this.#mirror.doubt(transactionalId);
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
    const held = this.#shards.held();
    if (this.#mirror.size === 0 || held.length === 0) {
      this.#open = { count: 0, oldestStartMs: -1 };
      return;
    }
    await this.#resolveDoubts();
    const nowMs = this.#options.clock.now();
    const open = await this.#options.metadata.open(nowMs, MAX_TIMEOUTS, numbersOf(held));
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
      const held = this.#shards.held();
      if (held.length === 0) return;
      const ids = await metadata.unused(unusedSinceMs, MAX_EXPIRED, numbersOf(held));
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
      'floe_transaction_shards',
      'Shards of transactional ids that this broker coordinates, of 50 in a cluster',
      () => this.#shards.count,
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
/** The store's answer was lost, or it failed: the client asks again. */
const LOST = ErrorCode.COORDINATOR_NOT_AVAILABLE;
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

function stagedBy({ errorCode, state }: TransactionOutcome): Staged {
  if (errorCode === LOST) return { kind: 'lost' };
  return errorCode === ErrorCode.NONE
    ? { kind: 'stored', incarnation: state!.incarnation }
    : { kind: 'refused' };
}

/** The note of a batch, or its error code, by the state of its transactional id. */
function admission(
  state: TransactionState | undefined,
  { producerId, producerEpoch, partitionId, mode }: AdmissionRequest,
): TransactionAdmission | number {
  const incarnation = state?.incarnation ?? -1;
  const batch = { producerId, producerEpoch, partitionId, incarnation, mode };
  const fault = produceFault(state, batch);
  return fault === ErrorCode.NONE ? { incarnation, mode } : fault;
}

function verifyFault(
  state: TransactionState | undefined,
  { producerId, producerEpoch }: Producer,
): number {
  if (state === undefined || state.producerId !== producerId)
    return ErrorCode.INVALID_PRODUCER_ID_MAPPING;
  return state.producerEpoch === producerEpoch ? ErrorCode.NONE : ErrorCode.PRODUCER_FENCED;
}

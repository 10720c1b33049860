// Transactions: what is known of a transactional id, and the rules by which requests change it.
// `step` is a total pure function: every store runs it between reading a transaction under its lock and writing it
// back, so the rules exist once; broker/transactions/SPEC.md is its table. EndTxn is one metadata transaction
// (state, markers, staged offsets, epoch), hence no Prepare states are ever stored.
// Not for: the log (LSO, markers, aborted ranges), wire messages, who may do it.
// Rules: KIP-98, KIP-360 (epoch recovery), KIP-447, KIP-664, KIP-890 (transactions v2).
import { ErrorCode } from '../protocol/errors.ts';
import type { StoredOffset } from './groups.ts';
import type { LeaseToken } from './leases.ts';
import { shardOf } from './shards.ts';

/** Kafka's states that outlast a request. `Dead`: the id has expired; a store deletes the row instead. */
export type TransactionStatus = 'Empty' | 'Ongoing' | 'CompleteCommit' | 'CompleteAbort' | 'Dead';

/** Offsets that are staged in a transaction: by group, by partition id. A group without any was only announced. */
export type StagedOffsets = ReadonlyMap<string, ReadonlyMap<number, StoredOffset>>;

/** A transactional id as it is stored. Plain data: it crosses threads by structured clone. */
export interface TransactionState {
  readonly transactionalId: string;
  readonly producerId: number;
  /** The epoch a producer must show: 0…32 766. */
  readonly producerEpoch: number;
  /** The producer id before the latest change of state (another one only after the epochs ran out), −1 if none. */
  readonly previousProducerId: number;
  /** The epoch whose holder asked for the present one, so that it may ask again (KIP-360); −1 if none. */
  readonly lastProducerEpoch: number;
  /**
   * Raised by whatever ends a producer's right to write: a new identity, the end of a transaction, an abort.
   * A write notes it when it is admitted and is refused if it has changed by the commit (L6).
   */
  readonly incarnation: number;
  readonly status: TransactionStatus;
  /** Of the client's latest request: 2 with KIP-890, else 0. */
  readonly transactionVersion: 0 | 2;
  readonly timeoutMs: number;
  /** When the present or latest transaction began, −1 before the first. */
  readonly startMs: number;
  readonly updateMs: number;
  /** Partition ids in the present transaction. */
  readonly partitions: ReadonlySet<number>;
  readonly offsets: StagedOffsets;
}

/** Who asks: the identity that InitProducerId or EndTxn gave. */
export interface Producer {
  readonly producerId: number;
  readonly producerEpoch: number;
}

/** What may happen to a transactional id. */
export type TransactionEvent =
  /** InitProducerId; `expected` is the caller's present identity (v3+, KIP-360). The timeout was checked before. */
  | { readonly type: 'init'; readonly timeoutMs: number; readonly expected?: Producer }
  /** AddPartitionsToTxn. */
  | ({ readonly type: 'add-partitions'; readonly partitionIds: readonly number[] } & Producer)
  /** AddOffsetsToTxn. `maxGroups`: more are refused, here and below. */
  | ({
      readonly type: 'add-offsets';
      readonly groupId: string;
      readonly maxGroups?: number;
    } & Producer)
  /** TxnOffsetCommit; v5+ needs no AddOffsetsToTxn before it. */
  | ({
      readonly type: 'stage-offsets';
      readonly groupId: string;
      readonly offsets: readonly StoredOffset[];
      readonly mode: TransactionMode;
      readonly maxGroups?: number;
    } & Producer)
  /** A batch of a transaction at its commit: begins the transaction or adds its partition, where the mode says so. */
  | ({ readonly type: 'produce'; readonly partitionId: number } & TransactionAdmission & Producer)
  /** EndTxn; `bump`: v5+, whose clients take a new epoch with every end. */
  | ({ readonly type: 'end'; readonly committed: boolean; readonly bump: boolean } & Producer)
  /** The time is up; nothing if it isn't, at `nowMs`. */
  | { readonly type: 'time-out' }
  /** An operator aborts a hanging transaction (WriteTxnMarkers): by the epoch, or whatever it is with −1. */
  | ({ readonly type: 'abort' } & Producer)
  /** The id was not used since `unusedSinceMs`. Nothing while a transaction is open. */
  | { readonly type: 'expire'; readonly unusedSinceMs: number };

/**
 * How a write outside the present transaction is treated, by the version of its request:
 * `verify` is refused with INVALID_TXN_STATE (Produce to v10, TxnOffsetCommit to v3), `verify-abortable` with
 * TRANSACTION_ABORTABLE (v11; v4), `implicit` joins, and begins the transaction if need be (v12+; v5+, KIP-890).
 */
export type TransactionMode = 'verify' | 'verify-abortable' | 'implicit';

/** What a transactional batch carries from its admission to its commit (`AppendItem.transaction`). */
export interface TransactionAdmission {
  readonly incarnation: number;
  readonly mode: TransactionMode;
}

/** What the transition needs beside state and event. */
export interface StepContext {
  readonly nowMs: number;
  /** Takes a producer id that was never used. Called at most once, only by a step that succeeds. */
  readonly newProducerId: () => number;
}

/** A transaction that a step has ended: what to write along with the new state. */
export interface EndedTransaction {
  readonly committed: boolean;
  readonly producerId: number;
  /** The epoch in the markers, below which the producer is fenced from now on. */
  readonly markerEpoch: number;
  /** Each gets a marker, written to or not. */
  readonly partitions: ReadonlySet<number>;
  /** To be applied to their groups; empty when aborted. */
  readonly offsets: StagedOffsets;
  readonly startMs: number;
}

export interface Step {
  /** A Kafka error code; anything but 0 leaves the state as it was. PRODUCER_FENCED whatever the API version. */
  readonly errorCode: number;
  /** Undefined only where there is none. */
  readonly next: TransactionState | undefined;
  readonly ended?: EndedTransaction;
}

/** The coordinator epoch in markers: coordinators don't move their state, so it never changes. */
export const COORDINATOR_EPOCH = 0;

/** The last epoch that a producer is given; the one above is left for the marker that fences it. */
export const MAX_PRODUCER_EPOCH = 32_766;

const NO_PARTITIONS: ReadonlySet<number> = new Set();
const NO_OFFSETS: StagedOffsets = new Map();

/** What becomes of a transactional id by one event. */
export function step(
  transactionalId: string,
  state: TransactionState | undefined,
  event: TransactionEvent,
  context: StepContext,
): Step {
  if (event.type === 'init') return init(transactionalId, state, event, context);
  if (state === undefined) return { errorCode: ErrorCode.INVALID_PRODUCER_ID_MAPPING, next: state };
  switch (event.type) {
    case 'add-partitions':
      return addPartitions(state, event, context);
    case 'add-offsets':
      return addOffsets(state, event, context);
    case 'stage-offsets':
      return stageOffsets(state, event, context);
    case 'produce':
      return produce(state, event, context);
    case 'end':
      return event.bump ? endAndBump(state, event, context) : end(state, event, context);
    case 'time-out':
      return timeOut(state, context);
    case 'abort':
      return abort(state, event, context);
    case 'expire':
      return expire(state, event);
  }
}

/**
 * The error code of a batch whose producer's state is `state`, 0 when it may be written to `partitionId`. It then
 * still has to join the transaction (`produce` event) unless `state.partitions` has the partition already.
 */
export function produceFault(
  state: TransactionState | undefined,
  batch: Producer & TransactionAdmission & { readonly partitionId: number },
): number {
  if (state === undefined || state.producerId !== batch.producerId)
    return ErrorCode.INVALID_PRODUCER_ID_MAPPING;
  if (state.producerEpoch !== batch.producerEpoch) return ErrorCode.INVALID_PRODUCER_EPOCH;
  if (state.incarnation !== batch.incarnation) return outsideCode(batch.mode);
  return batch.mode === 'implicit' || state.partitions.has(batch.partitionId)
    ? ErrorCode.NONE
    : outsideCode(batch.mode);
}

/** True when an open transaction has lasted longer than its timeout. */
export function isPastTimeout(state: TransactionState, nowMs: number): boolean {
  return state.status === 'Ongoing' && nowMs - state.startMs > state.timeoutMs;
}

type EventOf<T extends TransactionEvent['type']> = Extract<TransactionEvent, { readonly type: T }>;

const outsideCode = (mode: TransactionMode): number =>
  mode === 'verify' ? ErrorCode.INVALID_TXN_STATE : ErrorCode.TRANSACTION_ABORTABLE;

const refuse = (state: TransactionState | undefined, errorCode: number): Step => ({
  errorCode,
  next: state,
});

const accept = (next: TransactionState, ended?: EndedTransaction): Step =>
  ended === undefined
    ? { errorCode: ErrorCode.NONE, next }
    : { errorCode: ErrorCode.NONE, next, ended };

function init(
  transactionalId: string,
  state: TransactionState | undefined,
  { timeoutMs, expected }: EventOf<'init'>,
  context: StepContext,
): Step {
  if (state === undefined) return accept(fresh(transactionalId, timeoutMs, context));
  if (expected !== undefined) {
    const { producerId, producerEpoch: epoch } = expected;
    const rotated = producerId === state.previousProducerId && epoch >= MAX_PRODUCER_EPOCH;
    if (producerId !== state.producerId && !rotated)
      return refuse(state, ErrorCode.PRODUCER_FENCED);
    const current = producerId === state.producerId && epoch === state.producerEpoch;
    // The reply to the first call was lost: the same answer again, and writes since then stay admitted.
    if (!current && epoch === state.lastProducerEpoch && state.status !== 'Ongoing')
      return accept({
        ...emptied({ ...state, timeoutMs }, context),
        incarnation: state.incarnation,
      });
    if (!current) return refuse(state, ErrorCode.PRODUCER_FENCED);
  }
  const next = bumped(state, context);
  const lastProducerEpoch = expected === undefined ? -1 : state.producerEpoch;
  const empty = emptied({ ...state, ...next, timeoutMs, lastProducerEpoch }, context);
  return accept(empty, state.status === 'Ongoing' ? ended(state, false, true) : undefined);
}

function fresh(
  transactionalId: string,
  timeoutMs: number,
  { nowMs, newProducerId }: StepContext,
): TransactionState {
  return {
    transactionalId,
    producerId: newProducerId(),
    producerEpoch: 0,
    previousProducerId: -1,
    lastProducerEpoch: -1,
    incarnation: 0,
    status: 'Empty',
    transactionVersion: 0,
    timeoutMs,
    startMs: -1,
    updateMs: nowMs,
    partitions: NO_PARTITIONS,
    offsets: NO_OFFSETS,
  };
}

/** A state without transaction, as InitProducerId leaves it. */
function emptied(state: TransactionState, { nowMs }: StepContext): TransactionState {
  return {
    ...state,
    status: 'Empty',
    incarnation: state.incarnation + 1,
    startMs: -1,
    updateMs: nowMs,
    partitions: NO_PARTITIONS,
    offsets: NO_OFFSETS,
  };
}

/** The next identity: the epoch above, or a new producer id when the epochs have run out. */
function bumped(state: TransactionState, context: StepContext) {
  const { producerId, producerEpoch } = state;
  return producerEpoch >= MAX_PRODUCER_EPOCH
    ? {
        producerId: context.newProducerId(),
        producerEpoch: 0,
        previousProducerId: producerId,
        lastProducerEpoch: producerEpoch,
      }
    : {
        producerId,
        producerEpoch: producerEpoch + 1,
        previousProducerId: producerId,
        lastProducerEpoch: producerEpoch,
      };
}

/** The fault of a request by its identity alone. */
function identityFault(state: TransactionState, by: Producer): number {
  if (state.producerId !== by.producerId) return ErrorCode.INVALID_PRODUCER_ID_MAPPING;
  return state.producerEpoch === by.producerEpoch ? ErrorCode.NONE : ErrorCode.PRODUCER_FENCED;
}

/** The state with a transaction open: the present one, or one that begins now. */
function ongoing(state: TransactionState, { nowMs }: StepContext, version: 0 | 2) {
  const begins = state.status !== 'Ongoing';
  return {
    ...state,
    status: 'Ongoing',
    transactionVersion: version,
    startMs: begins ? nowMs : state.startMs,
    updateMs: nowMs,
  } as const;
}

function addPartitions(
  state: TransactionState,
  event: EventOf<'add-partitions'>,
  context: StepContext,
): Step {
  const fault = identityFault(state, event);
  if (fault !== ErrorCode.NONE) return refuse(state, fault);
  const added = event.partitionIds.filter((partitionId) => !state.partitions.has(partitionId));
  if (state.status === 'Ongoing' && added.length === 0) return accept(state);
  const partitions = new Set([...state.partitions, ...added]);
  return accept({ ...ongoing(state, context, 0), partitions });
}

function addOffsets(
  state: TransactionState,
  event: EventOf<'add-offsets'>,
  context: StepContext,
): Step {
  const fault = identityFault(state, event);
  if (fault !== ErrorCode.NONE) return refuse(state, fault);
  if (hasTooManyGroups(state, event)) return refuse(state, ErrorCode.INVALID_REQUEST);
  if (state.status === 'Ongoing' && state.offsets.has(event.groupId)) return accept(state);
  return accept({ ...ongoing(state, context, 0), offsets: staged(state, event.groupId, []) });
}

function stageOffsets(
  state: TransactionState,
  { groupId, offsets, mode, maxGroups, ...by }: EventOf<'stage-offsets'>,
  context: StepContext,
): Step {
  const fault = identityFault(state, by);
  if (fault !== ErrorCode.NONE) return refuse(state, fault);
  if (hasTooManyGroups(state, { groupId, maxGroups }))
    return refuse(state, ErrorCode.INVALID_REQUEST);
  const announced = state.status === 'Ongoing' && state.offsets.has(groupId);
  if (!announced && mode !== 'implicit') return refuse(state, outsideCode(mode));
  const version = mode === 'implicit' ? 2 : 0;
  return accept({ ...ongoing(state, context, version), offsets: staged(state, groupId, offsets) });
}

function hasTooManyGroups(
  { offsets }: TransactionState,
  {
    groupId,
    maxGroups = Infinity,
  }: { readonly groupId: string; readonly maxGroups?: number | undefined },
): boolean {
  return offsets.size >= maxGroups && !offsets.has(groupId);
}

function staged(
  state: TransactionState,
  groupId: string,
  offsets: readonly StoredOffset[],
): StagedOffsets {
  const group = new Map(state.offsets.get(groupId));
  for (const offset of offsets) group.set(offset.partitionId, offset);
  return new Map(state.offsets).set(groupId, group);
}

function produce(state: TransactionState, event: EventOf<'produce'>, context: StepContext): Step {
  const fault = produceFault(state, event);
  if (fault !== ErrorCode.NONE) return refuse(state, fault);
  if (state.partitions.has(event.partitionId)) return accept(state);
  const partitions = new Set(state.partitions).add(event.partitionId);
  return accept({ ...ongoing(state, context, 2), partitions });
}

/** EndTxn to v4: the epoch stays, a repeated call finds the outcome it asked for. */
function end(state: TransactionState, event: EventOf<'end'>, context: StepContext): Step {
  const fault = identityFault(state, event);
  if (fault !== ErrorCode.NONE) return refuse(state, fault);
  const { committed } = event;
  if (state.status === 'Ongoing')
    return accept(completed(state, committed, context), ended(state, committed, false));
  return state.status === outcome(committed)
    ? accept(state)
    : refuse(state, ErrorCode.INVALID_TXN_STATE);
}

/**
 * EndTxn v5+: the epoch tells a retry (one below, or the last of the former producer id) from a new request.
 * An abort is welcome without a transaction too: the client may not know whether its first write arrived.
 */
function endAndBump(state: TransactionState, event: EventOf<'end'>, context: StepContext): Step {
  const { committed, producerId, producerEpoch } = event;
  const isComplete = state.status === 'CompleteCommit' || state.status === 'CompleteAbort';
  const rotated =
    producerId === state.previousProducerId &&
    producerEpoch === MAX_PRODUCER_EPOCH &&
    state.producerEpoch === 0;
  const previous = producerId === state.producerId && producerEpoch === state.producerEpoch - 1;
  if (isComplete && (rotated || previous)) {
    return state.status === outcome(committed)
      ? accept(state)
      : refuse(state, ErrorCode.INVALID_TXN_STATE);
  }
  const fault = identityFault(state, event);
  if (fault !== ErrorCode.NONE) return refuse(state, fault);
  if (state.status !== 'Ongoing' && committed) return refuse(state, ErrorCode.INVALID_TXN_STATE);
  const next = { ...completed(state, committed, context), ...bumped(state, context) };
  return accept(
    { ...next, transactionVersion: 2 },
    state.status === 'Ongoing' ? ended(state, committed, true) : undefined,
  );
}

const outcome = (committed: boolean): TransactionStatus =>
  committed ? 'CompleteCommit' : 'CompleteAbort';

/** The state after the end of its transaction, the epoch left as it was. */
function completed(
  state: TransactionState,
  committed: boolean,
  { nowMs }: StepContext,
): TransactionState {
  return {
    ...state,
    status: outcome(committed),
    previousProducerId: state.producerId,
    incarnation: state.incarnation + 1,
    startMs: state.status === 'Ongoing' ? state.startMs : nowMs,
    updateMs: nowMs,
    partitions: NO_PARTITIONS,
    offsets: NO_OFFSETS,
  };
}

function ended(state: TransactionState, committed: boolean, fences: boolean): EndedTransaction {
  const { producerId, producerEpoch, partitions, offsets, startMs } = state;
  return {
    committed,
    producerId,
    markerEpoch: fences ? producerEpoch + 1 : producerEpoch,
    partitions,
    offsets: committed ? offsets : NO_OFFSETS,
    startMs,
  };
}

function timeOut(state: TransactionState, context: StepContext): Step {
  return isPastTimeout(state, context.nowMs) ? fence(state, context) : accept(state);
}

function abort(state: TransactionState, event: EventOf<'abort'>, context: StepContext): Step {
  if (state.producerId !== event.producerId)
    return refuse(state, ErrorCode.INVALID_PRODUCER_ID_MAPPING);
  if (state.status !== 'Ongoing') return accept(state);
  // Of an epoch before it: another transaction than the operator looked at.
  return event.producerEpoch >= 0 && event.producerEpoch < state.producerEpoch
    ? refuse(state, ErrorCode.INVALID_PRODUCER_EPOCH)
    : fence(state, context);
}

/** Aborts the open transaction and takes the epoch from its producer. */
function fence(state: TransactionState, context: StepContext): Step {
  const next = { ...completed(state, false, context), ...bumped(state, context) };
  return accept(next, ended(state, false, true));
}

function expire(state: TransactionState, { unusedSinceMs }: EventOf<'expire'>): Step {
  if (state.status === 'Ongoing' || state.updateMs > unusedSinceMs) return accept(state);
  return accept({ ...state, status: 'Dead' });
}

/** An event for one transactional id. */
export interface TransactionRequest {
  readonly transactionalId: string;
  readonly event: TransactionEvent;
}

/** What became of a request. */
export interface TransactionOutcome {
  readonly errorCode: number;
  /** Afterwards; undefined where there is none. */
  readonly state: TransactionState | undefined;
  readonly ended?: EndedTransaction;
  /** Staged offsets of the ended transaction that went into their groups: those of deleted topics are left out. */
  readonly applied?: StagedOffsets;
  /** Of its markers, −1 if there was no partition left to mark: a front that has applied it shows the end. */
  readonly commitNumber?: number;
}

/** What a partition knows of a producer that wrote to it (KIP-664). */
export interface PartitionProducer {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly lastSequence: number;
  /** Milliseconds. */
  readonly lastTimestamp: number;
  /** Of its latest marker here, −1 if there is none. */
  readonly coordinatorEpoch: number;
  /** First offset of its open transaction here, −1 if there is none. */
  readonly currentTransactionStart: number;
}

/** Open transactions, those begun by Produce included. */
export interface OpenTransactions {
  readonly count: number;
  /** When the oldest began, −1 if none is open. */
  readonly oldestStartMs: number;
  /** Ids of those past their timeout (`isPastTimeout`), at most as many as asked for. */
  readonly pastTimeout: readonly string[];
}

/** A transaction with offsets of groups staged, or about to be: those that it has announced. */
export interface StagingTransaction {
  readonly transactionalId: string;
  readonly groupIds: readonly string[];
}

/** Of open transactions, those that have to do with groups in these shards of groups. */
export function stagingIn(
  ongoing: Iterable<TransactionState>,
  groupShards: readonly number[],
): StagingTransaction[] {
  const wanted = new Set(groupShards);
  const found: StagingTransaction[] = [];
  for (const { transactionalId, offsets } of ongoing) {
    const groupIds = [...offsets.keys()].filter((groupId) => wanted.has(shardOf(groupId)));
    if (groupIds.length > 0) found.push({ transactionalId, groupIds });
  }
  return found;
}

/**
 * A transactional id belongs to a shard (shards.ts); whoever holds the lease `transactions/<shard>` gives it identities
 * and ends its transactions. Batches join them on any node, and offsets are staged by the holder of their group's lease:
 * the row of the id is locked by each, and `step` decides.
 */
export interface TransactionsMetadata {
  /**
   * The ids of these shards, for whoever has gained them; unless given, all. Partitions of deleted topics are left out,
   * here and everywhere.
   */
  load(shards?: readonly number[]): Promise<readonly TransactionState[]>;
  /**
   * Takes each request through `step`, in order, all in one metadata transaction: state, markers in the log with
   * the watermarks they move, staged offsets into their groups. Outcomes are in the order of requests.
   * All leases given are asserted in it, before anything else is locked: the store knows no higher epoch of any.
   * @throws FloeError `conflict` when a lease is another's: nothing happened. Others: nothing of this call happened,
   * except with `timeout` (unknown).
   */
  apply(
    requests: readonly TransactionRequest[],
    nowMs: number,
    leases?: readonly LeaseToken[],
  ): Promise<readonly TransactionOutcome[]>;
  /** Present states, in order of `transactionalIds`, whatever their shard. */
  describe(transactionalIds: readonly string[]): Promise<readonly (TransactionState | undefined)[]>;
  /** The id that writes under this producer id, if one does. */
  byProducer(producerId: number): Promise<TransactionState | undefined>;
  /** The open transactions of these shards (unless given, of all) at a glance; asked every second. */
  open(nowMs: number, limit: number, shards?: readonly number[]): Promise<OpenTransactions>;
  /** Ids of these shards (unless given, of all) without a transaction, last used at or before `unusedSinceMs`. */
  unused(
    unusedSinceMs: number,
    limit: number,
    shards?: readonly number[],
  ): Promise<readonly string[]>;
  /** Active producers by partition, in order of `partitionIds`; undefined for unknown partitions. */
  describeProducers(
    partitionIds: readonly number[],
  ): Promise<readonly (readonly PartitionProducer[] | undefined)[]>;
  /** Open transactions that have announced or staged offsets of groups in these shards of groups, with those groups. */
  staging(groupShards: readonly number[]): Promise<readonly StagingTransaction[]>;
}

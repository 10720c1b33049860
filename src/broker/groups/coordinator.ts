// The groups that this node coordinates, by shards that come and go with their leases: finds the group of a request,
// lets its protocol's runner answer, moves groups from one protocol to the other. Single-threaded: an event runs to its
// end before the next. See SPEC.md.
// Not for: wire messages (handlers/), the rules of groups (classic/, consumer/), of offsets (offsets.ts).

import type { Clock } from '../../base/clock.ts';
import type { FloeError } from '../../base/error.ts';
import type { Component } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource } from '../../base/prng.ts';
import type { Leases } from '../../cluster/cluster.ts';
import type { GroupsMetadata, LoadedGroup, StoredOffset } from '../../metadata/groups.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import { COORDINATOR_SHARDS, shardOf } from '../../metadata/shards.ts';
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import type { TransactionsMetadata } from '../../metadata/transactions.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { type HeldShard, numbersOf, Shards } from '../shards.ts';
import type { TransactionalGroups } from '../transactions/groups.ts';
import type { JoinReply, SyncReply } from './classic/effects.ts';
import { newGroup, restoreGroup, type Token } from './classic/group.ts';
import type { JoinEvent } from './classic/join.ts';
import type { HeartbeatEvent, LeaveEvent } from './classic/membership.ts';
import { ClassicGroups, failedJoin, failedSync } from './classic/runner.ts';
import { isSubscribed } from './classic/subscription.ts';
import type { SyncEvent } from './classic/sync.ts';
import { CommittedOffsets, type OffsetToCommit } from './committed-offsets.ts';
import { newConsumerGroup, restoreConsumerGroup } from './consumer/group.ts';
import {
  type ConsumerGroupConfig,
  type ConsumerHeartbeat,
  type ConsumerLeave,
  type HeartbeatReply,
  refusedHeartbeat,
} from './consumer/heartbeat.ts';
import { ConsumerGroups } from './consumer/runner.ts';
import type { ConsumerEvent } from './consumer/step.ts';
import { subscribesTo } from './consumer/topics.ts';
import { Deadlines } from './deadlines.ts';
import { type AnyGroup, type Entry, isEmpty, storeFault } from './entry.ts';
import { OffsetExpiry } from './expiry.ts';
import { type GroupConfigSource, groupConfig } from './group-configs.ts';
import { encodeOwned } from './migration.ts';
import { type Committer, commitFault, fetchFault, noteCommit } from './offsets.ts';
import { PatternTopics, patternFault } from './patterns.ts';
import { PendingOffsets } from './pending.ts';
import { ProtocolChange } from './protocol-change.ts';
import type { GroupSettings } from './settings.ts';
import { type SettleOptions, settle } from './settle.ts';
import { GroupWriter } from './writer.ts';

export type { OffsetToCommit } from './committed-offsets.ts';

export interface CoordinatorOptions {
  readonly metadata: GroupsMetadata;
  /** Asked how transactions stand that hold offsets of groups. */
  readonly transactions: Pick<TransactionsMetadata, 'describe' | 'staging'>;
  readonly leases: Leases;
  readonly directory: TopicDirectory;
  readonly settings: GroupSettings;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Configs of single groups; without it the settings hold for all. */
  readonly groupConfigs?: GroupConfigSource;
}

export type JoinRequest = Omit<JoinEvent, 'type' | 'token' | 'newMemberId'>;
export type SyncRequest = Omit<SyncEvent, 'type' | 'token'>;
export type HeartbeatRequest = Omit<HeartbeatEvent, 'type' | 'token'>;
export type Leaver = LeaveEvent['members'][number];

/** A group as others may see it. */
export interface GroupView {
  readonly group: Readonly<AnyGroup>;
  readonly offsets: ReadonlyMap<number, StoredOffset>;
}

export interface CommitInput {
  readonly offsets: readonly OffsetToCommit[];
  /** The request's own (OffsetCommit v2–4), −1 for the broker's. */
  readonly retentionMs?: number;
  /** Of OffsetCommit. */
  readonly apiVersion?: number;
}

export class GroupCoordinator implements Component, TransactionalGroups {
  readonly settings: GroupSettings;
  readonly #options: CoordinatorOptions;
  readonly pending: PendingOffsets;
  readonly #shards: Shards;
  readonly #writer: GroupWriter;
  readonly #topics: PatternTopics;
  readonly #deadlines: Deadlines;
  readonly #classic: ClassicGroups;
  readonly #consumer: ConsumerGroups;
  readonly #change: ProtocolChange;
  readonly #offsets: CommittedOffsets;
  readonly #expiry: OffsetExpiry;
  readonly #entries = new Map<string, Entry>();
  readonly #stopListening: () => void;
  /** Wall time that never jumps back or forth: sessions must not end because a clock was set. */
  readonly #epochMs: number;

  private constructor(options: CoordinatorOptions) {
    const { clock, settings, directory, metadata, leases } = options;
    this.#options = options;
    this.settings = settings;
    this.#shards = new Shards({
      kind: 'groups',
      leases,
      load: (held) => this.#load(held),
      drop: (held) => this.#drop(held),
      settled: () => this.#writer.settled(),
    });
    this.#epochMs = clock.now() - clock.monotonic();
    const now = () => this.#now();
    this.#writer = new GroupWriter(metadata, (token) => this.#shards.refused(token));
    this.pending = new PendingOffsets({
      applied: (groupId, offsets) => this.#applied(groupId, offsets),
    });
    this.#topics = new PatternTopics(directory);
    this.#deadlines = new Deadlines(clock, now, (groupId) => this.#tick(groupId));
    const shared = { writer: this.#writer, deadlines: this.#deadlines, settings, now };
    this.#classic = new ClassicGroups({
      ...shared,
      stepped: (entry, newGeneration) => this.#classicStepped(entry, newGeneration),
    });
    this.#consumer = new ConsumerGroups({
      ...shared,
      topics: this.#topics,
      configOf: (groupId) => this.configOf(groupId),
      stepped: (entry, event, newEpoch) => this.#consumerStepped(entry, event, newEpoch),
    });
    this.#change = new ProtocolChange({
      ...options,
      now,
      topics: this.#topics,
      classic: this.#classic,
      consumer: this.#consumer,
      nameOf: (id) => this.#nameOf(id),
      configOf: (groupId) => this.configOf(groupId),
    });
    this.#offsets = new CommittedOffsets(this.#writer, (entry, error, message) =>
      this.#warn(entry, error, message),
    );
    this.#expiry = new OffsetExpiry({
      ...options,
      entries: this.#entries,
      topics: this.#topics,
      offsets: this.#offsets,
      topicOf: (id) => this.#nameOf(id)?.[0],
      settle: async () => this.settle(),
      isPending: (groupId, id) => this.isPending(groupId, id),
      end: (entry) => this.#end(entry),
      warn: (entry, error, message) => this.#warn(entry, error, message),
    });
    this.#stopListening = directory.onChange((change) => {
      if (change.kind === 'deleted') this.#forgetPartitions(change.topic.partitions);
    });
    options.metrics.observeGauge(
      'floe_groups',
      'Groups known to this broker',
      () => this.#entries.size,
    );
    options.metrics.observeGauge(
      'floe_group_shards',
      'Shards of groups that this broker coordinates, of 50 in a cluster',
      () => this.#shards.count,
    );
  }

  /** Wants all shards; of those it holds at once the groups are loaded, where nobody else coordinates: all. */
  static async load(options: CoordinatorOptions): Promise<GroupCoordinator> {
    const coordinator = new GroupCoordinator(options);
    await coordinator.#shards.start();
    coordinator.#expiry.start();
    return coordinator;
  }

  /** Members go on if they are heard of within their session, counted from now. */
  async #load(held: readonly HeldShard[]): Promise<void> {
    const { metadata, transactions, directory, logger } = this.#options;
    // A partition made elsewhere a moment ago may have offsets already.
    await directory.catchUp();
    // Before the offsets: what ends in between is asked for, and read again.
    const staging = await transactions.staging(held.map(({ shard }) => shard));
    const groups = await metadata.load(numbersOf(held));
    const byShard: (HeldShard | undefined)[] = new Array(COORDINATOR_SHARDS).fill(undefined);
    for (const each of held) if (!each.dropped) byShard[each.shard] = each;
    for (const loaded of groups) {
      const shard = byShard[shardOf(loaded.group.groupId)];
      if (shard !== undefined) this.#restore(loaded, shard);
    }
    for (const { transactionalId, groupIds } of staging) {
      const ours = groupIds.filter((groupId) => byShard[shardOf(groupId)] !== undefined);
      this.pending.found(transactionalId, ours);
    }
    if (held.length < COORDINATOR_SHARDS)
      logger.info({ shards: held.length, groups: groups.length }, 'coordinates more groups');
  }

  #restore({ group, offsets }: LoadedGroup, held: HeldShard): void {
    const now = this.#now();
    const { sessionTimeoutMs } = this.configOf(group.groupId);
    const restored =
      group.kind === 'classic'
        ? restoreGroup(group, now)
        : restoreConsumerGroup(group, { now, sessionTimeoutMs });
    const entry = this.#keep(restored, held);
    for (const offset of offsets) entry.offsets.set(offset.partitionId, offset);
    this.#schedule(restored);
  }

  /** The shard is another node's, or may be: all who wait hear of it at once. */
  #drop(held: HeldShard): void {
    this.#classic.drop(held);
    this.#writer.drop(held);
    this.pending.drop(held.shard);
    for (const [groupId, entry] of this.#entries) {
      if (entry.held !== held) continue;
      this.#entries.delete(groupId);
      this.#deadlines.set(groupId, Infinity);
    }
  }

  /** NOT_COORDINATOR, or that the group is being loaded, when this node can't speak for it now, else 0. */
  faultOf(groupId: string): number {
    return this.#shards.faultOf(groupId);
  }

  /** Resolves when the group's shard is loaded or given up; undefined where it isn't being loaded. */
  loading(groupId: string): Promise<unknown> | undefined {
    return this.#shards.loading(groupId);
  }

  /** COORDINATOR_LOAD_IN_PROGRESS while some shard is being loaded: a list would miss its groups. */
  get listFault(): number {
    return this.#shards.isLoading ? ErrorCode.COORDINATOR_LOAD_IN_PROGRESS : 0;
  }

  /** What holds for members of a consumer group: its own configs, over the settings. */
  configOf(groupId: string): ConsumerGroupConfig {
    return groupConfig(this.settings, this.#options.groupConfigs?.(groupId));
  }

  /** Why a pattern can't be used, for people; undefined when it can. */
  patternFault(pattern: string): string | undefined {
    return patternFault(pattern);
  }

  /** Waits for the next generation, or until `signal` says that the client or the broker goes: NOT_COORDINATOR. */
  async join(groupId: string, request: JoinRequest, signal?: AbortSignal): Promise<JoinReply> {
    const fault = this.#joinFault(groupId, request);
    const entry = fault !== 0 ? fault : this.#entryFor(groupId, request.memberId === '');
    if (typeof entry === 'number') return failedJoin(entry, request.memberId);
    const prefix = request.instanceId ?? request.clientId;
    const newMemberId = `${prefix}-${this.#options.ids.uuid()}`;
    const reply = await this.#joinEntry(entry, { ...request, newMemberId }, signal);
    const lost = this.#fault(entry);
    return lost === 0 ? reply : failedJoin(lost, request.memberId);
  }

  async #joinEntry(
    entry: Entry,
    request: JoinRequest & { readonly newMemberId: string },
    signal?: AbortSignal,
  ): Promise<JoinReply> {
    if (entry.group.kind === 'consumer' && isEmpty(entry.group)) this.#change.startClassic(entry);
    if (entry.group.kind === 'classic') {
      const event = (token: Token) => ({ type: 'join', token, ...request }) as const;
      const asked = { event, ...(signal === undefined ? {} : { signal }) };
      return (await this.#classic.ask(entry, 'join-reply', asked)).reply;
    }
    const answered = await this.#consumer.ask(entry, { type: 'classic-join', ...request });
    if (!('answer' in answered)) return failedJoin(answered.errorCode, request.memberId);
    const { errorCode, memberId, generation, protocol } = answered.answer;
    if (errorCode !== 0) return failedJoin(errorCode, memberId);
    // Nobody leads: the broker assigns.
    const nobody = { leaderId: '', skipAssignment: false, members: [] };
    return { errorCode, memberId, generation, protocolType: 'consumer', protocol, ...nobody };
  }

  /** Waits for the leader's assignment, or as {@link join}. */
  async sync(groupId: string, request: SyncRequest, signal?: AbortSignal): Promise<SyncReply> {
    const entry = this.#existing(groupId);
    if (typeof entry === 'number') return failedSync(entry);
    const reply = await this.#syncEntry(entry, request, signal);
    const lost = this.#fault(entry);
    return lost === 0 ? reply : failedSync(lost);
  }

  async #syncEntry(entry: Entry, request: SyncRequest, signal?: AbortSignal): Promise<SyncReply> {
    if (entry.group.kind === 'classic') {
      const event = (token: Token) => ({ type: 'sync', token, ...request }) as const;
      const asked = { event, ...(signal === undefined ? {} : { signal }) };
      return (await this.#classic.ask(entry, 'sync-reply', asked)).reply;
    }
    const { assignments: _, ...event } = request;
    const answered = await this.#consumer.ask(entry, { type: 'classic-sync', ...event });
    if (!('answer' in answered)) return failedSync(answered.errorCode);
    const { errorCode, assigned, version } = answered.answer;
    if (errorCode !== 0) return failedSync(errorCode);
    const owned = assigned.map((id) => this.#nameOf(id)).filter((name) => name !== undefined);
    const { protocolType, protocol } = request;
    return { errorCode, protocolType, protocol, assignment: encodeOwned(owned, version) };
  }

  /** Returns an error code. */
  async heartbeat(groupId: string, request: HeartbeatRequest): Promise<number> {
    const entry = this.#existing(groupId);
    if (typeof entry === 'number') return entry;
    if (entry.group.kind === 'consumer') {
      const event = { type: 'classic-heartbeat', ...request } as const;
      const answered = await this.#consumer.ask(entry, event);
      return this.#fault(entry) || ('answer' in answered ? answered.answer : answered.errorCode);
    }
    const event = (token: Token) => ({ type: 'heartbeat', token, ...request }) as const;
    const { errorCode } = await this.#classic.ask(entry, 'reply', { event });
    return this.#fault(entry) || errorCode;
  }

  /** Returns an error code for each leaver, in order. */
  async leave(groupId: string, leavers: readonly Leaver[]): Promise<readonly number[]> {
    const entry = this.#existing(groupId);
    const all = (errorCode: number) => leavers.map(() => errorCode);
    if (typeof entry === 'number') return all(entry);
    if (entry.group.kind === 'consumer') {
      const event = { type: 'classic-leave', members: leavers } as const;
      const answered = await this.#consumer.ask(entry, event);
      const lost = this.#fault(entry);
      if (lost !== 0) return all(lost);
      return 'answer' in answered ? answered.answer : all(answered.errorCode);
    }
    const event = (token: Token) => ({ type: 'leave', token, members: leavers }) as const;
    const { errorCodes } = await this.#classic.ask(entry, 'leave-reply', { event });
    const lost = this.#fault(entry);
    return lost === 0 ? errorCodes : all(lost);
  }

  /** ConsumerGroupHeartbeat, its request checked already (KIP-848). */
  async consumerHeartbeat(
    groupId: string,
    event: ConsumerHeartbeat | ConsumerLeave,
  ): Promise<HeartbeatReply> {
    const joins = event.type === 'heartbeat' && event.memberEpoch === 0;
    const entry = this.#consumerEntry(groupId, joins);
    if ('errorCode' in entry) return entry;
    const answered = await this.#consumer.ask(entry, event);
    const lost = this.#fault(entry);
    if (lost !== 0) return refusedHeartbeat(lost, 'another broker may coordinate');
    if ('answer' in answered) return answered.answer;
    return refusedHeartbeat(answered.errorCode, 'the change could not be stored: try again');
  }

  /** Stores positions before it returns an error code for each, in order. */
  async commit(
    groupId: string,
    committer: Committer,
    { offsets, retentionMs = -1, apiVersion = 8 }: CommitInput,
  ): Promise<readonly number[]> {
    const all = (errorCode: number) => offsets.map(() => errorCode);
    const entry = this.#committedEntry(groupId, committer, apiVersion);
    if (typeof entry === 'number') return all(entry);
    const partitionIds = offsets.map(({ partitionId }) => partitionId);
    const fault = commitFault(entry.group, committer, { apiVersion, partitionIds });
    if (fault !== 0) return all(fault);
    noteCommit(entry.group, committer, this.#now());
    const codes = await this.#offsets.commit(entry, offsets, {
      nowMs: this.#options.clock.now(),
      retentionMs,
      maxMetadataBytes: this.settings['offset.metadata.max.bytes'],
    });
    this.#dropIfUnused(entry);
    const lost = this.#fault(entry);
    return lost === 0 ? codes : all(lost);
  }

  /** The error code of a commit within a transaction (TxnOffsetCommit); 0 when offsets may be staged. */
  stageFault(groupId: string, committer: Committer): number {
    const fault = this.faultOf(groupId);
    if (fault !== 0) return fault;
    const entry = this.#entries.get(groupId);
    if (entry === undefined) return committer.generation < 0 ? 0 : ErrorCode.ILLEGAL_GENERATION;
    return commitFault(entry.group, committer, { apiVersion: undefined, partitionIds: [] });
  }

  /** The right to stage offsets of the group in transactions, or the error code that says why this node can't. */
  stagingLease(groupId: string): LeaseToken | number {
    const held = this.#shards.find(groupId);
    return typeof held === 'number' ? held : held.token;
  }

  leaseRefused(token: LeaseToken): void {
    this.#shards.refused(token);
  }

  /** A transaction has ended here: its offsets lie in the store. False when a commit under way may be before or after. */
  #applied(groupId: string, offsets: ReadonlyMap<number, StoredOffset>): boolean {
    const held = this.#shards.of(groupId);
    if (held === undefined) return true;
    const entry = this.#entries.get(groupId) ?? this.#keep(newGroup(groupId, this.#now()), held);
    if (entry.commits > 0) return false;
    for (const [partitionId, offset] of offsets)
      if (this.#nameOf(partitionId) !== undefined) entry.offsets.set(partitionId, offset);
    return true;
  }

  /** Committed offsets as the store has them, of partitions that `isWanted` says. */
  #replace(
    groupId: string,
    offsets: readonly StoredOffset[],
    isWanted: (partitionId: number) => boolean = () => true,
  ): void {
    const held = this.#shards.of(groupId);
    if (held === undefined || (offsets.length === 0 && !this.#entries.has(groupId))) return;
    const entry = this.#entries.get(groupId) ?? this.#keep(newGroup(groupId, this.#now()), held);
    for (const partitionId of entry.offsets.keys())
      if (isWanted(partitionId)) entry.offsets.delete(partitionId);
    for (const offset of offsets)
      if (isWanted(offset.partitionId)) entry.offsets.set(offset.partitionId, offset);
  }

  /**
   * Learns what has become of transactions that hold offsets of the groups (unless given, of all) and end on other nodes:
   * to be called before their offsets are spoken of. Returns an error code; 0 at once where there is nothing to ask.
   */
  settle(groupIds?: readonly string[]): Promise<number> | 0 {
    if (groupIds?.every((groupId) => !this.pending.isUnsure(groupId)) === true) return 0;
    const { metadata: groups, transactions } = this.#options;
    const { pending } = this;
    const replace: SettleOptions['replace'] = (...args) => this.#replace(...args);
    return settle({ pending, writer: this.#writer, groups, transactions, replace }, groupIds);
  }

  /** True when an open transaction has an offset of the group staged: require_stable answers UNSTABLE_OFFSET_COMMIT. */
  isPending(groupId: string, partitionId: number): boolean {
    return this.pending.has(groupId, partitionId);
  }

  /** The error code of an OffsetFetch by whoever says to be this member; null and −1 for nobody. */
  fetchFault(groupId: string, memberId: string | null, memberEpoch: number): number {
    const fault = this.faultOf(groupId);
    if (fault !== 0) return fault;
    const entry = this.#entries.get(groupId);
    return entry === undefined ? 0 : fetchFault(entry.group, { memberId, memberEpoch });
  }

  /** The group with its committed offsets; undefined when it is unknown. */
  view(groupId: string): GroupView | undefined {
    return this.#entries.get(groupId);
  }

  /** The groups that this node speaks for now. */
  views(): readonly GroupView[] {
    return [...this.#entries.values()].filter((entry) => this.#fault(entry) === 0);
  }

  /** Deletes the group with its offsets if it has no members. Returns an error code. */
  async delete(groupId: string): Promise<number> {
    const fault = this.faultOf(groupId) || (await this.settle([groupId]));
    if (fault !== 0) return fault;
    const entry = this.#entries.get(groupId);
    if (entry === undefined) return ErrorCode.GROUP_ID_NOT_FOUND;
    if (!isEmpty(entry.group)) return ErrorCode.NON_EMPTY_GROUP;
    const { error } = await this.#end(entry, true);
    if (error === undefined) this.pending.forget(groupId);
    return this.#fault(entry) || (error === undefined ? 0 : storeFault(error));
  }

  /**
   * Removes committed offsets of a topic's partitions that no member uses. Returns one error code for all.
   * A group of another type than "consumer" must have no members (the caller asks with `topic` of each).
   */
  async deleteOffsets(
    groupId: string,
    topic: string,
    partitionIds: readonly number[],
  ): Promise<number> {
    const fault = this.faultOf(groupId) || (await this.settle([groupId]));
    if (fault !== 0) return fault;
    const entry = this.#entries.get(groupId);
    if (entry === undefined) return ErrorCode.GROUP_ID_NOT_FOUND;
    const { group } = entry;
    const inUse =
      group.kind === 'classic'
        ? isSubscribed(group, topic)
        : subscribesTo(group, topic, this.#topics);
    if (inUse) return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC;
    const error = await this.#offsets.remove(entry, partitionIds);
    return this.#fault(entry) || (error === undefined ? 0 : storeFault(error));
  }

  /** Answers all who wait with NOT_COORDINATOR, so that clients look for another, and finishes writes. */
  async stop(): Promise<void> {
    this.#shards.close();
    this.#stopListening();
    this.#topics.stop();
    this.#expiry.stop();
    this.#deadlines.stop();
    this.#classic.stop();
    await this.#writer.idle();
    await this.#shards.stop();
  }

  /** As {@link faultOf}, of a group that was found before: its shard must be the same still. */
  #fault({ held }: Entry): number {
    return this.#shards.fault(held);
  }

  #now(): number {
    return Math.floor(this.#epochMs + this.#options.clock.monotonic());
  }

  #nameOf(partitionId: number): readonly [string, number] | undefined {
    const found = this.#options.directory.byPartition(partitionId);
    return found === undefined ? undefined : [found.topic.name, found.index];
  }

  /** The group's entry, made if there is none and `create`; else an error code. */
  #entryFor(groupId: string, create: boolean): Entry | number {
    const held = this.#shards.find(groupId);
    if (typeof held === 'number') return held;
    const known = this.#entries.get(groupId);
    if (known !== undefined) return known;
    if (!create) return ErrorCode.UNKNOWN_MEMBER_ID;
    const full = this.#createFault(groupId);
    return full === 0 ? this.#keep(newGroup(groupId, this.#now()), held) : full;
  }

  #createFault(groupId: string): number {
    if (groupId.length > MAX_GROUP_ID_LENGTH) return ErrorCode.INVALID_GROUP_ID;
    const full = this.#entries.size >= this.settings['group.max.count'];
    return full ? ErrorCode.GROUP_MAX_SIZE_REACHED : 0;
  }

  /** For requests of members. */
  #existing(groupId: string): Entry | number {
    return groupId === '' ? ErrorCode.INVALID_GROUP_ID : this.#entryFor(groupId, false);
  }

  /** The entry of a consumer group; whoever joins makes it, of nothing or of a classic group. */
  #consumerEntry(groupId: string, joins: boolean): Entry | HeartbeatReply {
    const held = this.#shards.find(groupId);
    if (typeof held === 'number') return refusedHeartbeat(held, 'another broker may coordinate');
    const known = this.#entries.get(groupId);
    const none = (text: string) => refusedHeartbeat(ErrorCode.GROUP_ID_NOT_FOUND, text);
    if (known === undefined) {
      if (!joins) return none(`there is no group ${groupId}`);
      const fault = this.#createFault(groupId);
      if (fault !== 0) return refusedHeartbeat(fault, 'the group can not be made');
      return this.#keep(newConsumerGroup(groupId, this.#now()), held);
    }
    if (known.group.kind === 'consumer') return known;
    if (!joins) return none(`group ${groupId} is not a consumer group`);
    const why = this.#change.upgrade(known);
    return why === undefined ? known : none(`group ${groupId} is not a consumer group: ${why}`);
  }

  #joinFault(groupId: string, { sessionTimeoutMs }: JoinRequest): number {
    if (groupId === '') return ErrorCode.INVALID_GROUP_ID;
    const { settings } = this;
    const allowed =
      sessionTimeoutMs >= settings['group.min.session.timeout.ms'] &&
      sessionTimeoutMs <= settings['group.max.session.timeout.ms'];
    return allowed ? 0 : ErrorCode.INVALID_SESSION_TIMEOUT;
  }

  /** Commits from outside make the group; those of a generation need one. */
  #committedEntry(groupId: string, { generation }: Committer, apiVersion: number): Entry | number {
    const entry = this.#entryFor(groupId, generation < 0);
    if (entry !== ErrorCode.UNKNOWN_MEMBER_ID) return entry;
    return apiVersion >= 9 ? ErrorCode.GROUP_ID_NOT_FOUND : ErrorCode.ILLEGAL_GENERATION;
  }

  #keep(group: AnyGroup, held: HeldShard): Entry {
    const entry = { held, group, offsets: new Map(), commits: 0, saving: undefined };
    this.#entries.set(group.groupId, entry);
    return entry;
  }

  #tick(groupId: string): void {
    const entry = this.#entries.get(groupId);
    if (entry === undefined) return;
    if (entry.group.kind === 'classic') this.#classic.step(entry, { type: 'tick' });
    else this.#consumer.tick(entry);
  }

  #schedule(group: AnyGroup): void {
    if (group.kind === 'classic') this.#classic.schedule(group);
    else this.#consumer.schedule(group);
  }

  #classicStepped(entry: Entry, newGeneration: boolean): void {
    if (newGeneration) this.#countRebalance('classic');
    this.#dropIfUnused(entry);
  }

  #consumerStepped(entry: Entry, event: ConsumerEvent, newEpoch: boolean): void {
    if (newEpoch) this.#countRebalance('consumer');
    this.#change.maybeDowngrade(entry, event);
    this.#dropIfUnused(entry);
  }

  #countRebalance(protocol: string): void {
    const help = 'Generations and epochs begun by groups';
    this.#options.metrics.count('floe_group_generations_total', help, { protocol });
  }

  /** A group that was never stored and holds nothing need not be kept: a refused first join leaves one. */
  #dropIfUnused({ group, offsets, commits }: Entry): void {
    if (offsets.size > 0 || commits > 0 || group.members.size > 0) return;
    const unused =
      group.kind === 'classic'
        ? group.generation === 0 && group.pending.size === 0 && group.protocolType === ''
        : group.epoch === 1 && group.assignmentEpoch === 0;
    if (unused && this.#entries.get(group.groupId)?.group === group)
      this.#entries.delete(group.groupId);
  }

  /** Out of memory at once: whoever comes after starts a new group, whose writes follow the deletion. */
  #end(entry: Entry, withStaged = false) {
    const { groupId } = entry.group;
    if (entry.group.kind === 'classic') this.#classic.step(entry, { type: 'end' });
    else this.#consumer.end(entry);
    this.#deadlines.set(groupId, Infinity);
    if (this.#entries.get(groupId) === entry) this.#entries.delete(groupId);
    return this.#writer.write(entry.held, { kind: 'group-gone', groupId, withStaged });
  }

  #forgetPartitions(partitionIds: readonly number[]): void {
    for (const { offsets } of this.#entries.values())
      for (const partitionId of partitionIds) offsets.delete(partitionId);
  }

  #warn({ group }: Entry, error: FloeError, message: string): void {
    this.#options.logger.warn(
      { group: group.groupId, code: error.code, error: error.message },
      message,
    );
  }
}

/** Kafka has no limit, but a group id is kept in memory and in the store for as long as its offsets are. */
const MAX_GROUP_ID_LENGTH = 1_024;

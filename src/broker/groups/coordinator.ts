// All groups of this broker: takes requests to the state machine, carries out its effects, keeps timers and the
// store. Single-threaded: an event runs to its end before the next. See SPEC.md.
// Not for: wire messages (handlers/), the rules of the group itself (step.ts).
import type { Clock, Timer } from '../../base/clock.ts';
import type { FloeError } from '../../base/error.ts';
import type { Component } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource } from '../../base/prng.ts';
import type { GroupsMetadata, StoredOffset } from '../../metadata/groups.ts';
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type Effect,
  type JoinReply,
  joinFailed,
  type SyncReply,
  syncFailed,
} from './classic/effects.ts';
import {
  type Group,
  newGroup,
  nextDeadline,
  restoreGroup,
  snapshotGroup,
  type Token,
} from './classic/group.ts';
import type { JoinEvent } from './classic/join.ts';
import type { HeartbeatEvent, LeaveEvent } from './classic/membership.ts';
import { type GroupEvent, step } from './classic/step.ts';
import { isSubscribed } from './classic/subscription.ts';
import type { SyncEvent } from './classic/sync.ts';
import {
  type Committer,
  commitFault,
  expiredOffsets,
  type GroupOffsets,
  noteCommit,
} from './offsets.ts';
import type { GroupSettings } from './settings.ts';
import { GroupWriter } from './writer.ts';

export interface CoordinatorOptions {
  readonly metadata: GroupsMetadata;
  readonly directory: TopicDirectory;
  readonly settings: GroupSettings;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export type JoinRequest = Omit<JoinEvent, 'type' | 'token' | 'newMemberId'>;
export type SyncRequest = Omit<SyncEvent, 'type' | 'token'>;
export type HeartbeatRequest = Omit<HeartbeatEvent, 'type' | 'token'>;
export type Leaver = LeaveEvent['members'][number];

/** A position to commit; the partition was resolved by the caller. */
export interface OffsetToCommit {
  readonly partitionId: number;
  readonly offset: number;
  readonly leaderEpoch: number;
  readonly metadata: string;
}

/** A group as others may see it. */
export interface GroupView {
  readonly group: Readonly<Group>;
  readonly offsets: ReadonlyMap<number, StoredOffset>;
}

interface Entry {
  readonly group: Group;
  readonly offsets: GroupOffsets;
  /** Commits on their way to the store: the group must not vanish under them. */
  commits: number;
  timer: Timer | undefined;
  timerMs: number;
}

type Reply =
  | { readonly kind: 'join-reply'; readonly reply: JoinReply }
  | { readonly kind: 'sync-reply'; readonly reply: SyncReply }
  | { readonly kind: 'reply'; readonly errorCode: number }
  | { readonly kind: 'leave-reply'; readonly errorCodes: readonly number[] };

interface Waiting {
  readonly kind: Reply['kind'];
  resolve(reply: Reply): void;
}

export class GroupCoordinator implements Component {
  readonly settings: GroupSettings;
  readonly #options: CoordinatorOptions;
  readonly #writer: GroupWriter;
  readonly #entries = new Map<string, Entry>();
  readonly #waiting = new Map<Token, Waiting>();
  readonly #stopListening: () => void;
  /** Wall time that never jumps back or forth: sessions must not end because a clock was set. */
  readonly #epochMs: number;
  #nextToken: Token = 1;
  #expiryTimer: Timer | undefined;
  #stopped = false;

  private constructor(options: CoordinatorOptions) {
    this.#options = options;
    this.settings = options.settings;
    this.#epochMs = options.clock.now() - options.clock.monotonic();
    this.#writer = new GroupWriter(options.metadata);
    this.#stopListening = options.directory.onChange((change) => {
      if (change.kind === 'deleted') this.#forgetPartitions(change.topic.partitions);
    });
    options.metrics.observeGauge(
      'floe_groups',
      'Consumer groups known to this broker',
      () => this.#entries.size,
    );
  }

  /** Loads all groups; members stored in a generation continue in it if they are heard of within their session. */
  static async load(options: CoordinatorOptions): Promise<GroupCoordinator> {
    const coordinator = new GroupCoordinator(options);
    for (const { group, offsets } of await options.metadata.load()) {
      const restored = restoreGroup(group, coordinator.#now());
      const entry = coordinator.#keep(restored);
      for (const offset of offsets) entry.offsets.set(offset.partitionId, offset);
      coordinator.#schedule(entry);
    }
    coordinator.#scheduleExpiry();
    return coordinator;
  }

  /** Waits for the next generation, or until `signal` says that the client or the broker goes: NOT_COORDINATOR. */
  async join(groupId: string, request: JoinRequest, signal?: AbortSignal): Promise<JoinReply> {
    const fault = this.#joinFault(groupId, request);
    const entry = fault !== 0 ? fault : this.#entryFor(groupId, request.memberId === '');
    if (typeof entry === 'number') return failedJoin(entry, request.memberId);
    const prefix = request.instanceId ?? request.clientId;
    const newMemberId = `${prefix}-${this.#options.ids.uuid()}`;
    const event = (token: Token) => ({ type: 'join', token, newMemberId, ...request }) as const;
    return (await this.#ask(entry, 'join-reply', event, signal)).reply;
  }

  /** Waits for the leader's assignment, or as {@link join}. */
  async sync(groupId: string, request: SyncRequest, signal?: AbortSignal): Promise<SyncReply> {
    const entry = this.#existing(groupId);
    if (typeof entry === 'number') return failedSync(entry);
    const event = (token: Token) => ({ type: 'sync', token, ...request }) as const;
    return (await this.#ask(entry, 'sync-reply', event, signal)).reply;
  }

  /** Returns an error code. */
  async heartbeat(groupId: string, request: HeartbeatRequest): Promise<number> {
    const entry = this.#existing(groupId);
    if (typeof entry === 'number') return entry;
    const answer = await this.#ask(entry, 'reply', (token) => ({
      type: 'heartbeat',
      token,
      ...request,
    }));
    return answer.errorCode;
  }

  /** Returns an error code for each leaver, in order. */
  async leave(groupId: string, leavers: readonly Leaver[]): Promise<readonly number[]> {
    const entry = this.#existing(groupId);
    if (typeof entry === 'number') return leavers.map(() => entry);
    const answer = await this.#ask(entry, 'leave-reply', (token) => ({
      type: 'leave',
      token,
      members: leavers,
    }));
    return answer.errorCodes;
  }

  /**
   * Stores positions before it returns an error code for each, in order of `offsets`.
   * `retentionMs` is the request's own (OffsetCommit v2–4), −1 for the broker's.
   */
  async commit(
    groupId: string,
    committer: Committer,
    { offsets, retentionMs = -1 }: { offsets: readonly OffsetToCommit[]; retentionMs?: number },
  ): Promise<readonly number[]> {
    const entry = this.#committedEntry(groupId, committer);
    const fault = typeof entry === 'number' ? entry : commitFault(entry.group, committer);
    if (typeof entry === 'number' || fault !== 0) return offsets.map(() => fault);
    noteCommit(entry.group, committer, this.#now());
    const limit = this.settings['offset.metadata.max.bytes'];
    const codes = offsets.map(({ metadata }) =>
      Buffer.byteLength(metadata) > limit ? ErrorCode.OFFSET_METADATA_TOO_LARGE : 0,
    );
    const commitMs = this.#options.clock.now();
    const expireMs = retentionMs >= 0 ? commitMs + retentionMs : -1;
    const rows = offsets
      .filter((_, index) => codes[index] === 0)
      .map((offset) => ({ ...offset, commitMs, expireMs }));
    const { error, gone } = await this.#storeOffsets(entry, rows);
    return codes.map((code, index) => {
      if (code !== 0) return code;
      if (error !== undefined) return STORE_FAILED;
      return gone.includes(offsets[index]!.partitionId) ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION : 0;
    });
  }

  /** The group with its committed offsets; undefined when it is unknown. */
  view(groupId: string): GroupView | undefined {
    return this.#entries.get(groupId);
  }

  views(): readonly GroupView[] {
    return [...this.#entries.values()];
  }

  /** Deletes the group with its offsets if it has no members. Returns an error code. */
  async delete(groupId: string): Promise<number> {
    const entry = this.#entries.get(groupId);
    if (entry === undefined) return ErrorCode.GROUP_ID_NOT_FOUND;
    if (entry.group.state !== 'Empty') return ErrorCode.NON_EMPTY_GROUP;
    const { error } = await this.#end(entry);
    return error === undefined ? 0 : STORE_FAILED;
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
    const entry = this.#entries.get(groupId);
    if (entry === undefined) return ErrorCode.GROUP_ID_NOT_FOUND;
    if (isSubscribed(entry.group, topic)) return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC;
    const error = await this.#removeOffsets(entry, partitionIds);
    return error === undefined ? 0 : STORE_FAILED;
  }

  /** Answers all who wait with NOT_COORDINATOR, so that clients look for another, and finishes writes. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stopListening();
    this.#expiryTimer?.cancel();
    for (const entry of this.#entries.values()) entry.timer?.cancel();
    for (const token of [...this.#waiting.keys()]) this.#refuse(token, ErrorCode.NOT_COORDINATOR);
    await this.#writer.idle();
  }

  #now(): number {
    return Math.floor(this.#epochMs + this.#options.clock.monotonic());
  }

  /** The group's entry, made if there is none and `create`; else an error code. */
  #entryFor(groupId: string, create: boolean): Entry | number {
    if (this.#stopped) return ErrorCode.NOT_COORDINATOR;
    const known = this.#entries.get(groupId);
    if (known !== undefined) return known;
    if (!create) return ErrorCode.UNKNOWN_MEMBER_ID;
    if (groupId.length > MAX_GROUP_ID_LENGTH) return ErrorCode.INVALID_GROUP_ID;
    if (this.#entries.size >= this.settings['group.max.count'])
      return ErrorCode.GROUP_MAX_SIZE_REACHED;
    return this.#keep(newGroup(groupId, this.#now()));
  }

  /** For requests of members. */
  #existing(groupId: string): Entry | number {
    return groupId === '' ? ErrorCode.INVALID_GROUP_ID : this.#entryFor(groupId, false);
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
  #committedEntry(groupId: string, { generation }: Committer): Entry | number {
    const entry = this.#entryFor(groupId, generation < 0);
    return entry === ErrorCode.UNKNOWN_MEMBER_ID ? ErrorCode.ILLEGAL_GENERATION : entry;
  }

  #keep(group: Group): Entry {
    const entry = { group, offsets: new Map(), commits: 0, timer: undefined, timerMs: Infinity };
    this.#entries.set(group.groupId, entry);
    return entry;
  }

  /** Runs the event of a request; resolves when some event, this or a later one, answers it. */
  #ask<K extends Reply['kind']>(
    entry: Entry,
    kind: K,
    event: (token: Token) => GroupEvent,
    signal?: AbortSignal,
  ): Promise<Extract<Reply, { kind: K }>> {
    const token = this.#nextToken++;
    const giveUp = () => this.#refuse(token, ErrorCode.NOT_COORDINATOR);
    const answer = new Promise<Reply>((resolve) => {
      this.#waiting.set(token, { kind, resolve });
      this.#step(entry, event(token));
    });
    // The member stays in the group: it may be back within its session.
    if (signal?.aborted) giveUp();
    else signal?.addEventListener('abort', giveUp, { once: true });
    return answer.finally(() => signal?.removeEventListener('abort', giveUp)) as Promise<
      Extract<Reply, { kind: K }>
    >;
  }

  #step(entry: Entry, event: GroupEvent): void {
    const { group } = entry;
    const before = group.generation;
    for (const effect of step(group, event, { now: this.#now(), settings: this.settings }))
      this.#carryOut(entry, effect);
    if (group.generation !== before)
      this.#options.metrics.count('floe_group_generations_total', 'Generations begun by groups');
    // A heartbeat only moves a deadline away; the timer finds out when it fires.
    if (event.type !== 'heartbeat') this.#schedule(entry);
    this.#dropIfUnused(entry);
  }

  #carryOut(entry: Entry, effect: Effect): void {
    if (effect.kind !== 'persist') {
      const waiting = this.#waiting.get(effect.token);
      this.#waiting.delete(effect.token);
      waiting?.resolve(effect);
      return;
    }
    const { reason } = effect;
    const change = { kind: 'group', group: snapshotGroup(entry.group) } as const;
    void this.#writer.write(change).then(({ error }) => {
      if (error !== undefined) this.#warn(entry, error, 'could not store the group');
      if (!this.#stopped)
        this.#step(entry, {
          type: 'persisted',
          reason,
          errorCode: error === undefined ? 0 : STORE_FAILED,
        });
    });
  }

  #schedule(entry: Entry): void {
    const next = this.#stopped ? Infinity : nextDeadline(entry.group);
    if (entry.timer !== undefined && entry.timerMs <= next && next !== Infinity) return;
    entry.timer?.cancel();
    entry.timer = undefined;
    if (next === Infinity) return;
    entry.timerMs = next;
    entry.timer = this.#options.clock.setTimer(next - this.#now(), () => {
      entry.timer = undefined;
      this.#step(entry, { type: 'tick' });
    });
  }

  /** A group that was never stored and holds nothing need not be kept: a refused first join leaves one. */
  #dropIfUnused({ group, offsets, commits }: Entry): void {
    const unused = group.state === 'Empty' && group.generation === 0 && group.pending.size === 0;
    if (unused && group.protocolType === '' && offsets.size === 0 && commits === 0)
      this.#entries.delete(group.groupId);
  }

  async #storeOffsets(entry: Entry, offsets: readonly StoredOffset[]) {
    entry.commits += 1;
    const { groupId } = entry.group;
    const result =
      offsets.length === 0
        ? { error: undefined, gone: [] }
        : await this.#writer.write({ kind: 'offsets', groupId, offsets });
    entry.commits -= 1;
    if (result.error !== undefined) this.#warn(entry, result.error, 'could not store offsets');
    else
      for (const offset of offsets)
        if (!result.gone.includes(offset.partitionId))
          entry.offsets.set(offset.partitionId, offset);
    this.#dropIfUnused(entry);
    return result;
  }

  async #removeOffsets(
    entry: Entry,
    partitionIds: readonly number[],
  ): Promise<FloeError | undefined> {
    const seen = partitionIds.map((partitionId) => entry.offsets.get(partitionId));
    const { groupId } = entry.group;
    const { error } = await this.#writer.write({ kind: 'offsets-gone', groupId, partitionIds });
    if (error !== undefined) return error;
    // What was committed anew meanwhile came after the removal in the store too.
    for (const [index, partitionId] of partitionIds.entries())
      if (entry.offsets.get(partitionId) === seen[index]) entry.offsets.delete(partitionId);
    return undefined;
  }

  /** Out of memory at once: whoever comes after starts a new group, whose writes follow the deletion. */
  #end(entry: Entry) {
    this.#step(entry, { type: 'end' });
    entry.timer?.cancel();
    this.#entries.delete(entry.group.groupId);
    return this.#writer.write({ kind: 'group-gone', groupId: entry.group.groupId });
  }

  #forgetPartitions(partitionIds: readonly number[]): void {
    for (const { offsets } of this.#entries.values())
      for (const partitionId of partitionIds) offsets.delete(partitionId);
  }

  #scheduleExpiry(): void {
    const delay = this.settings['offsets.retention.check.interval.ms'];
    this.#expiryTimer = this.#options.clock.setTimer(delay, () => {
      for (const entry of [...this.#entries.values()]) void this.#expire(entry);
      this.#scheduleExpiry();
    });
  }

  async #expire(entry: Entry): Promise<void> {
    const { group, offsets } = entry;
    const due = expiredOffsets(group, offsets, {
      now: this.#options.clock.now(),
      retentionMs: this.settings['offsets.retention.minutes'] * 60_000,
      topicOf: (partitionId) => this.#options.directory.byPartition(partitionId)?.topic.name,
    });
    const error = due.length === 0 ? undefined : await this.#removeOffsets(entry, due);
    if (error !== undefined) this.#warn(entry, error, 'could not remove expired offsets');
    const idle = group.state === 'Empty' && group.pending.size === 0 && entry.commits === 0;
    if (idle && offsets.size === 0 && !this.#stopped) await this.#end(entry);
  }

  #refuse(token: Token, errorCode: number): void {
    const waiting = this.#waiting.get(token);
    this.#waiting.delete(token);
    if (waiting?.kind === 'join-reply') waiting.resolve(joinFailed(token, errorCode) as Reply);
    else if (waiting?.kind === 'sync-reply') waiting.resolve(syncFailed(token, errorCode) as Reply);
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

/** A store that fails is a coordinator that is not available: clients try again (L9). */
const STORE_FAILED = ErrorCode.COORDINATOR_NOT_AVAILABLE;

function failedJoin(errorCode: number, memberId: string): JoinReply {
  return (joinFailed(0, errorCode, memberId) as Extract<Effect, { kind: 'join-reply' }>).reply;
}

function failedSync(errorCode: number): SyncReply {
  return (syncFailed(0, errorCode) as Extract<Effect, { kind: 'sync-reply' }>).reply;
}

// Fetch sessions (KIP-227): the broker remembers which partitions a consumer fetches and from where, so that
// a poll names only what changed and its answer holds only what is new. Sans I/O; time enters as `nowMs`.
// Not for: reading (handlers/01-fetch.ts).
// A session is gone after a restart, when unused and its slot is wanted, or when the client closes it; the client
// then gets FETCH_SESSION_ID_NOT_FOUND and starts anew. Without a free slot it fetches in full each time.
import type { Prng } from '../base/prng.ts';
import { ErrorCode } from '../protocol/errors.ts';

/** One partition as a client asks for it. */
export interface FetchPartition {
  /** '' when asked for by id. */
  readonly topic: string;
  /** The zero UUID when asked for by name. */
  readonly topicId: string;
  readonly index: number;
  readonly fetchOffset: number;
  readonly maxBytes: number;
  /** −1: not checked. */
  readonly currentLeaderEpoch: number;
}

/** What names a partition in a request's list of forgotten ones. */
export type PartitionName = Pick<FetchPartition, 'topic' | 'topicId' | 'index'>;

export interface FetchDemand {
  readonly sessionId: number;
  readonly sessionEpoch: number;
  readonly byTopicId: boolean;
  readonly partitions: readonly FetchPartition[];
  readonly forgotten: readonly PartitionName[];
}

/** What a reply said of a partition last; a session repeats it only when it changes. */
interface Told {
  highWatermark: number;
  logStartOffset: number;
}

interface SessionEntry {
  asked: FetchPartition;
  readonly told: Told;
}

/** How a request is to be answered. */
export type FetchContext =
  | { readonly kind: 'refused'; readonly errorCode: number }
  /** All of `partitions` are answered; `session` is new, or undefined. */
  | {
      readonly kind: 'full';
      readonly partitions: readonly FetchPartition[];
      readonly session: FetchSession | undefined;
    }
  /** Only partitions with news are answered. */
  | {
      readonly kind: 'incremental';
      readonly partitions: readonly FetchPartition[];
      readonly session: FetchSession;
    };

/** What a session needs to know of an answer. */
export interface PartitionAnswer {
  readonly asked: FetchPartition;
  readonly errorCode: number;
  readonly highWatermark: number;
  readonly logStartOffset: number;
  readonly bytes: number;
}

/** An unused session may be replaced after this long; Kafka's constant. */
const EVICT_AFTER_MS = 120_000;

/** Most partitions of all sessions together: about 200 bytes each. */
const MAX_SESSION_PARTITIONS = 1_000_000;

const FULL_EPOCH = 0;
const FINAL_EPOCH = -1;
const MAX_EPOCH = 2 ** 31 - 1;

const keyOf = ({ topic, topicId, index }: PartitionName) => `${topic || topicId}/${index}`;

export class FetchSession {
  readonly id: number;
  readonly byTopicId: boolean;
  readonly entries = new Map<string, SessionEntry>();
  /** The epoch that the next request must carry. */
  epoch = 1;
  lastUsedMs: number;

  constructor(id: number, byTopicId: boolean, nowMs: number) {
    this.id = id;
    this.byTopicId = byTopicId;
    this.lastUsedMs = nowMs;
  }

  /** Takes over what a request adds, changes and forgets. */
  update(demand: Pick<FetchDemand, 'partitions' | 'forgotten'>): void {
    for (const asked of demand.partitions) {
      const key = keyOf(asked);
      const entry = this.entries.get(key);
      if (entry !== undefined) entry.asked = asked;
      else this.entries.set(key, { asked, told: { highWatermark: -1, logStartOffset: -1 } });
    }
    for (const name of demand.forgotten) this.entries.delete(keyOf(name));
  }

  /** True when the client has to hear of `answer`; notes what it hears, and moves a fed partition to the end. */
  news(answer: PartitionAnswer): boolean {
    const key = keyOf(answer.asked);
    const entry = this.entries.get(key);
    if (entry === undefined) return true;
    const { told } = entry;
    const changed =
      answer.errorCode !== 0 ||
      answer.bytes > 0 ||
      told.highWatermark !== answer.highWatermark ||
      told.logStartOffset !== answer.logStartOffset;
    // After an error everything is told again.
    told.highWatermark = answer.errorCode === 0 ? answer.highWatermark : -1;
    told.logStartOffset = answer.errorCode === 0 ? answer.logStartOffset : -1;
    if (answer.bytes > 0) {
      this.entries.delete(key);
      this.entries.set(key, entry);
    }
    return changed;
  }
}

export class FetchSessions {
  readonly #byId = new Map<number, FetchSession>();
  readonly #prng: Prng;
  readonly #slots: () => number;
  #partitions = 0;

  constructor(options: { readonly prng: Prng; readonly slots: () => number }) {
    this.#prng = options.prng;
    this.#slots = options.slots;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** How `demand` is to be answered; makes, updates or closes its session. */
  open(demand: FetchDemand, nowMs: number): FetchContext {
    const { sessionId, sessionEpoch } = demand;
    if (sessionEpoch !== FULL_EPOCH && sessionEpoch !== FINAL_EPOCH) {
      return this.#resume(demand, nowMs);
    }
    const old = this.#byId.get(sessionId);
    if (old !== undefined) this.#drop(old);
    const wanted = sessionEpoch === FULL_EPOCH && demand.partitions.length > 0;
    const session = wanted ? this.#create(demand, nowMs) : undefined;
    return { kind: 'full', partitions: demand.partitions, session };
  }

  #resume(demand: FetchDemand, nowMs: number): FetchContext {
    const session = this.#byId.get(demand.sessionId);
    if (session === undefined) return refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
    if (session.epoch !== demand.sessionEpoch)
      return refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH);
    if (session.byTopicId !== demand.byTopicId)
      return refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR);
    const before = session.entries.size;
    session.update(demand);
    this.#partitions += session.entries.size - before;
    session.lastUsedMs = nowMs;
    session.epoch = session.epoch === MAX_EPOCH ? 1 : session.epoch + 1;
    this.#byId.delete(session.id);
    if (session.entries.size === 0) return { kind: 'full', partitions: [], session: undefined };
    // Insertion order is order of use: the first is the least recently used.
    this.#byId.set(session.id, session);
    const partitions = Array.from(session.entries.values(), (entry) => entry.asked);
    return { kind: 'incremental', partitions, session };
  }

  #create(demand: FetchDemand, nowMs: number): FetchSession | undefined {
    if (this.#byId.size >= this.#slots() && !this.#evict(nowMs)) return undefined;
    if (this.#partitions + demand.partitions.length > MAX_SESSION_PARTITIONS) return undefined;
    const session = new FetchSession(this.#freeId(), demand.byTopicId, nowMs);
    session.update({ partitions: demand.partitions, forgotten: [] });
    this.#partitions += session.entries.size;
    this.#byId.set(session.id, session);
    return session;
  }

  /** Makes room by dropping the session that was not used for longest, if it is old enough. */
  #evict(nowMs: number): boolean {
    const [oldest] = this.#byId.values();
    if (oldest === undefined || nowMs - oldest.lastUsedMs < EVICT_AFTER_MS) return false;
    this.#drop(oldest);
    return true;
  }

  #drop(session: FetchSession): void {
    this.#byId.delete(session.id);
    this.#partitions -= session.entries.size;
  }

  #freeId(): number {
    for (;;) {
      const id = 1 + this.#prng.int(2 ** 31 - 1);
      if (!this.#byId.has(id)) return id;
    }
  }
}

function refused(errorCode: number): FetchContext {
  return { kind: 'refused', errorCode };
}

// Brings what other brokers commit: asks the metadata store for the commits after those that are here and hands them to
// the front, which applies them in their turn. At once when another broker hints, when somebody waits for a commit, or
// when more is known to be there; else every tenth of a second while readers wait, every second while none does.
// What it brings besides — versions of everything that nodes keep copies of — is passed on.
// A plain object on clock and metadata; not for: the order (commit-order.ts), hints themselves (cluster/).
import { assert } from '../../base/assert.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { FollowedCommit, Following, LogMetadata } from '../../metadata/log.ts';
import { openIndex, partitionsIn } from '../../metadata/packed-index.ts';
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import type { Versions } from '../../metadata/versions.ts';
import type { FrontLog, Primary } from './front-log.ts';
import type { LogStarts } from './log-starts.ts';

export interface FollowerOptions {
  readonly metadata: Pick<LogMetadata, 'follow'>;
  readonly front: Pick<FrontLog, 'committed' | 'whenApplied' | 'lastCommitNumber'> &
    Pick<FrontLog, 'waitingCommits' | 'awaited'>;
  readonly topics: Pick<TopicDirectory, 'byPartition' | 'refresh'>;
  readonly starts: Pick<LogStarts, 'seen' | 'caughtUp'>;
  /** Of the snapshot that the front began with. */
  readonly versions: Versions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** `log.follow.poll.ms` and `log.follow.idle.ms`. */
  readonly pollMs: number;
  readonly idleMs: number;
  /** `Primary.isCurrent`: what watches stored objects knows it. */
  readonly isCurrent: () => boolean;
  /** The store has forgotten commits that this node lacks, or contradicts it: it must start over. */
  readonly onFatal: (error: FloeError) => void;
}

/** Commits asked for at a time; as many more may wait for their turn in the front before it is asked again. */
const ROWS_AT_ONCE = 500;
/** Pause after a question that failed, so that a store that is away isn't pressed. */
const RETRY_MS = 100;
/** Partitions of deleted topics that are remembered, so that their commits ask for no topics. */
const MAX_GONE = 10_000;

interface CaughtUp {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Follower implements Primary {
  readonly #options: FollowerOptions;
  readonly #onVersions = new Set<(versions: Versions) => void>();
  readonly #onCommitted = new Set<(commitNumber: number) => void>();
  readonly #gone = new Set<number>();
  #versions: Versions;
  /** Newest commit that has come here in unbroken order. */
  #taken: number;
  /** Newest commit that somebody has told of. */
  #known = 0;
  /** Ask as soon as possible: what a running question brings may be older than what it was asked for. */
  #again = false;
  #running: Promise<void> | undefined;
  #askedMs: number;
  #notBeforeMs = 0;
  #timer: Timer | undefined;
  /** Who wants an answer to a question that begins from now on. */
  #waiting: CaughtUp[] = [];
  #stopped = false;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#versions = options.versions;
    this.#taken = options.front.lastCommitNumber;
    this.#askedMs = options.clock.monotonic();
    this.#schedule();
  }

  /** As of the last answer. */
  get versions(): Versions {
    return this.#versions;
  }

  /** Calls back with the versions of each answer, after its commits were handed over. Returns how to stop that. */
  onVersions(listener: (versions: Versions) => void): () => void {
    this.#onVersions.add(listener);
    return () => void this.#onVersions.delete(listener);
  }

  /** Calls back with the numbers of this node's own commits: what others are to be hinted. Returns how to stop that. */
  onCommitted(listener: (commitNumber: number) => void): () => void {
    this.#onCommitted.add(listener);
    return () => void this.#onCommitted.delete(listener);
  }

  /** Another broker has committed up to `commitNumber`. */
  hinted(commitNumber: number): void {
    if (commitNumber <= Math.max(this.#known, this.#behind)) return;
    this.#known = commitNumber;
    this.#soon();
  }

  wanted(commitNumber: number): void {
    this.#known = Math.max(this.#known, commitNumber);
    this.#soon();
  }

  committed(commitNumber: number): void {
    for (const listener of this.#onCommitted) listener(commitNumber);
  }

  awaited(): void {
    if (this.#options.clock.monotonic() - this.#askedMs >= this.#options.pollMs) this.#soon();
    else this.#schedule();
  }

  isCurrent(): boolean {
    return this.#options.isCurrent();
  }

  /** @throws FloeError `unavailable`, `timeout`: the store could not be asked. */
  caughtUp(): Promise<void> {
    if (this.#stopped) return Promise.reject(stopped());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#soon();
    });
  }

  /** Newest commit that is applied here, or waits for its turn. */
  get #behind(): number {
    return Math.max(this.#taken, this.#options.front.lastCommitNumber);
  }

  /** Asks now, or once more after the question under way. */
  #soon(): void {
    this.#again = true;
    if (this.#options.clock.monotonic() < this.#notBeforeMs) this.#schedule();
    else this.#start();
  }

  #start(): void {
    if (this.#stopped || this.#running !== undefined) return;
    this.#timer?.cancel();
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      this.#schedule();
    });
  }

  /** The next question that nobody has to ask for. */
  #schedule(): void {
    if (this.#stopped || this.#running !== undefined) return;
    this.#timer?.cancel();
    const { clock, front, pollMs, idleMs } = this.#options;
    const everyMs = front.awaited || front.waitingCommits > 0 ? pollMs : idleMs;
    const dueMs = Math.max(this.#again ? 0 : this.#askedMs + everyMs, this.#notBeforeMs);
    this.#timer = clock.setTimer(Math.max(0, dueMs - clock.monotonic()), () => this.#start());
  }

  async #run(): Promise<void> {
    do {
      this.#again = false;
      const waiting = this.#waiting.splice(0);
      try {
        const lastCommit = await this.#ask(waiting.length > 0);
        for (const { resolve, reject } of waiting) this.#here(lastCommit).then(resolve, reject);
      } catch (caught) {
        for (const { reject } of waiting) reject(caught);
        this.#failed(caught);
        return;
      }
    } while (this.#again && !this.#stopped);
  }

  /** What the last answer told of counts here: commits, and where logs begin. */
  async #here(lastCommit: number): Promise<void> {
    const { front, starts } = this.#options;
    const versions = this.#versions;
    await front.whenApplied(lastCommit);
    await starts.caughtUp(versions);
  }

  /** Asks once and hands over what comes. @returns the newest commit there was. */
  async #ask(caughtUp: boolean): Promise<number> {
    const { metadata, front, clock, metrics } = this.#options;
    this.#askedMs = clock.monotonic();
    const after = this.#behind;
    // The row of a flush of ours waits for its reply, and all others behind it: there is no use in more of them.
    const full = front.waitingCommits >= ROWS_AT_ONCE;
    if (full && !caughtUp) return after;
    const answer = await metadata.follow(after, full ? 1 : ROWS_AT_ONCE);
    checkGapless(after, answer);
    await this.#learnTopics(answer.rows);
    if (this.#stopped) throw stopped();
    this.#taken = Math.max(this.#taken, answer.rows.at(-1)?.commitNumber ?? 0);
    front.committed(answer.rows);
    metrics.count('floe_log_follow_total', 'Questions for commits of other brokers.');
    this.#known = Math.max(this.#known, answer.lastCommit);
    if (answer.lastCommit > this.#behind) this.#again = true;
    this.#versions = answer.versions;
    this.#options.starts.seen(answer.versions);
    for (const listener of this.#onVersions) listener(answer.versions);
    return answer.lastCommit;
  }

  /** Topics that were created elsewhere; a partition that nobody knows afterwards is of a deleted one, for good. */
  async #learnTopics(rows: readonly FollowedCommit[]): Promise<void> {
    const { topics } = this.#options;
    const unknown = new Set<number>();
    const look = (partitionId: number) => {
      if (topics.byPartition(partitionId) === undefined && !this.#gone.has(partitionId))
        unknown.add(partitionId);
    };
    for (const { index } of rows) partitionsIn(openIndex(index)).forEach(look);
    // A refresh that was under way may have asked before the topic was there, and is shared by who comes later.
    for (let attempt = 0; attempt < 2 && unknown.size > 0; attempt += 1) {
      await topics.refresh();
      for (const partitionId of unknown)
        if (topics.byPartition(partitionId) !== undefined) unknown.delete(partitionId);
    }
    if (this.#gone.size + unknown.size > MAX_GONE) this.#gone.clear();
    for (const partitionId of unknown) this.#gone.add(partitionId);
  }

  #failed(caught: unknown): void {
    if (this.#stopped) return;
    if (caught instanceof Error && caught.name === 'AssertionError') throw caught;
    const error = FloeError.from(caught, 'following');
    const { logger, metrics, clock, onFatal } = this.#options;
    if (error.code === 'not-found') {
      this.#stopped = true;
      const text = `commits after ${this.#behind} are no longer kept for followers (this broker was cut off or paused for longer than they are): it must start again`;
      onFatal(new FloeError('unavailable', text, { cause: caught }));
      return;
    }
    // The store contradicts what this node knows.
    if (error.code === 'corrupt') {
      this.#stopped = true;
      onFatal(error);
      return;
    }
    metrics.count('floe_log_follow_failures_total', 'Questions for commits that failed.');
    logger.warn({ error: error.message }, "other brokers' commits can't be read, trying again");
    this.#notBeforeMs = clock.monotonic() + RETRY_MS;
    this.#again = true;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    for (const { reject } of this.#waiting.splice(0)) reject(stopped());
    await this.#running?.catch(() => {});
  }
}

const stopped = () => new FloeError('cancelled', 'the broker is stopping');

function checkGapless(after: number, { rows }: Following): void {
  for (const [n, { commitNumber }] of rows.entries())
    assert(commitNumber === after + 1 + n, 'L4: commits are followed without a gap');
}

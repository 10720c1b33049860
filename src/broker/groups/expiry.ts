// Looks for expired offsets and for groups that hold nothing any more, from time to time.
// Not for: which offsets are due (offsets.ts).
import type { Clock, Timer } from '../../base/clock.ts';
import type { FloeError } from '../../base/error.ts';
import type { CommittedOffsets } from './committed-offsets.ts';
import { subscribesTo, type TopicView } from './consumer/topics.ts';
import { type Entry, isEmpty } from './entry.ts';
import { expiredOffsets } from './offsets.ts';
import type { GroupSettings } from './settings.ts';

export interface OffsetExpiryOptions {
  readonly clock: Clock;
  readonly settings: GroupSettings;
  readonly entries: ReadonlyMap<string, Entry>;
  readonly topics: TopicView;
  readonly offsets: CommittedOffsets;
  /** Undefined once it is deleted. */
  topicOf(partitionId: number): string | undefined;
  /** Learns what is pending, and what became of it. Returns an error code. */
  settle(): Promise<number>;
  /** True when an open transaction has an offset staged. */
  isPending(groupId: string, partitionId: number): boolean;
  /** Removes a group. */
  end(entry: Entry): Promise<unknown>;
  warn(entry: Entry, error: FloeError, message: string): void;
}

export class OffsetExpiry {
  readonly #options: OffsetExpiryOptions;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: OffsetExpiryOptions) {
    this.#options = options;
  }

  start(): void {
    const { clock, settings } = this.#options;
    this.#timer = clock.setTimer(settings['offsets.retention.check.interval.ms'], () => {
      void this.#look();
      this.start();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** What transactions have done elsewhere is learnt first: what they hold must not expire, what they left may. */
  async #look(): Promise<void> {
    const { entries, settle } = this.#options;
    if ((await settle()) !== 0) return;
    for (const entry of [...entries.values()]) void this.#expire(entry);
  }

  async #expire(entry: Entry): Promise<void> {
    const { clock, settings, topics, topicOf, isPending, warn, end } = this.#options;
    const { group } = entry;
    const due = expiredOffsets(group, entry.offsets, {
      now: clock.now(),
      retentionMs: settings['offsets.retention.minutes'] * 60_000,
      topicOf,
      isSubscribed: (consumers, topic) => subscribesTo(consumers, topic, topics),
      isPending: (partitionId) => isPending(group.groupId, partitionId),
    });
    const error = due.length === 0 ? undefined : await this.#options.offsets.remove(entry, due);
    if (error !== undefined) warn(entry, error, 'could not remove expired offsets');
    const isOver = this.#stopped || entry.held.dropped;
    if (entry.offsets.size === 0 && isIdle(entry) && !isOver) await end(entry);
  }
}

function isIdle({ group, commits, saving }: Entry): boolean {
  const pending = group.kind === 'classic' && group.pending.size > 0;
  return isEmpty(group) && !pending && commits === 0 && saving === undefined;
}

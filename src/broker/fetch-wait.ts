// The wait of a long poll: until enough bytes may have come, the time is up, the leader moves, or the client is gone.
// It never misses a commit: whoever reads first notes what the log held, and that is compared after subscribing.
import { QUARANTINE_CONFIG } from '../metadata/quarantine.ts';
import type { Log } from '../storage/log/log.ts';
import type { PartitionRead } from './fetch-read.ts';
import type { BrokerServices } from './services.ts';

export interface WaitOptions {
  /** What the last pass found. */
  readonly partitions: readonly PartitionRead[];
  readonly bytes: number;
  readonly minBytes: number;
  readonly deadlineMs: number;
  /** {@link FetchWaits.changes} from before that pass. */
  readonly changes: number;
  readonly readCommitted: boolean;
  readonly signal: AbortSignal;
}

/** The long polls of a broker that wait. */
export class FetchWaits {
  /** What ends a poll, and what it waits for. */
  readonly #polls = new Map<() => void, readonly PartitionRead[]>();
  #changes = 0;

  get waiting(): number {
    return this.#polls.size;
  }

  /** @param end makes it the last pass over `partitions`. @returns what to call when the wait is over. */
  begin(end: () => void, partitions: readonly PartitionRead[]): () => void {
    this.#polls.set(end, partitions);
    return () => this.#polls.delete(end);
  }

  /**
   * All are answered with what there is, as Kafka's are when leaders move: a client that hears of another leader would
   * ask there while its poll waits here, be given the same by both, and kafkajs would hand it on twice.
   */
  endAll(): void {
    for (const end of [...this.#polls.keys()]) end();
  }

  /** How often polls of some partitions have been ended: who was reading meanwhile doesn't wait. */
  get changes(): number {
    return this.#changes;
  }

  /** Those are answered that wait for one of these partition ids. */
  endOf(partitionIds: ReadonlySet<number>): void {
    this.#changes += 1;
    for (const [end, partitions] of [...this.#polls]) {
      if (partitions.some(({ partitionId }) => partitionIds.has(partitionId))) end();
    }
  }
}

/** Polls end when the quarantine of what they wait for changes: they hear of it at once. @returns how to end that. */
export function endPollsOfQuarantine({
  directory,
  fetchWaits,
}: Pick<BrokerServices, 'directory' | 'fetchWaits'>): () => void {
  return directory.onChange((change) => {
    if (change.kind !== 'changed' || change.previous === undefined) return;
    const { topic, previous } = change;
    if (topic.config[QUARANTINE_CONFIG] === previous.config[QUARANTINE_CONFIG]) return;
    fetchWaits.endOf(new Set(topic.partitions));
  });
}

/** Resolves when another pass is worth while; with true when it is to be the last one. */
export function waitForBytes(services: BrokerServices, options: WaitOptions): Promise<boolean> {
  const { log, clock, fetchWaits } = services;
  const { partitions, deadlineMs, signal, readCommitted } = options;
  const ids: number[] = [];
  for (const { partitionId, errorCode } of partitions) if (errorCode === 0) ids.push(partitionId);
  const missing = options.minBytes - options.bytes;
  // Any byte will do, or a transaction's end, which brings none: no need to count.
  const anything = missing <= 1 || readCommitted;
  const heldBefore = anything ? 0 : bytesHeld(log, ids);
  return new Promise((resolve) => {
    let done = false;
    let looking = false;
    const end = (last: boolean) => {
      if (done) return;
      done = true;
      over();
      unsubscribe();
      timer.cancel();
      signal.removeEventListener('abort', giveUp);
      resolve(last);
    };
    const giveUp = () => end(true);
    const look = () => {
      looking = false;
      if (anything || bytesHeld(log, ids) - heldBefore >= missing) end(false);
    };
    const over = fetchWaits.begin(giveUp, partitions);
    // Looks after the commit at hand has told of all its partitions, so that one pass reads them together.
    const unsubscribe = log.subscribe(ids, () => {
      if (looking) return;
      looking = true;
      queueMicrotask(look);
    });
    const timer = clock.setTimer(deadlineMs - clock.monotonic(), giveUp);
    signal.addEventListener('abort', giveUp, { once: true });
    if (signal.aborted || fetchWaits.changes !== options.changes) giveUp();
    else if (moved(log, partitions, readCommitted)) end(false);
  });
}

function bytesHeld(log: Log, ids: readonly number[]): number {
  let sum = 0;
  for (const id of ids) sum += log.sizeOf(id);
  return sum;
}

/** True when the log has moved on since the pass. */
function moved(log: Log, partitions: readonly PartitionRead[], readCommitted: boolean): boolean {
  for (const { partitionId, errorCode, highWatermark, lastStableOffset } of partitions) {
    if (errorCode !== 0) continue;
    const now = log.watermarks(partitionId);
    if (now === undefined) return true;
    if (readCommitted ? now.lastStableOffset > lastStableOffset : now.highWatermark > highWatermark)
      return true;
  }
  return false;
}

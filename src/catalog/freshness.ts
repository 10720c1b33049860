// Answers of an external catalog that are older than what it said before: a replica that lags, a cache. Such an answer
// must not be believed, since "main is not at the parent any more" would then look like a lost race, whose files may go
// (rule T5). A table's last sequence number and last update never go back, not even when it is rolled back; when they
// seem to for long, somebody has really put older metadata in place.
import type { Clock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { TableMetadata } from '../formats/iceberg/index.ts';
import type { TableIdentifier } from './catalog.ts';
import { shownTable } from './names.ts';

interface Seen {
  readonly uuid: string;
  readonly sequence: number;
  readonly updatedMs: number;
  /** Monotonic time since when older answers come; undefined while none does. */
  staleSinceMs: number | undefined;
}

/** Tables remembered; the one not seen for longest is forgotten, and then believed whatever it says. */
const MAX_TABLES = 20_000;

export class Freshness {
  readonly #clock: Clock;
  readonly #believeAfterMs: number;
  readonly #seen = new Map<string, Seen>();

  constructor(clock: Clock, believeAfterMs: number) {
    this.#clock = clock;
    this.#believeAfterMs = believeAfterMs;
  }

  /** Takes note of an answer to a read. @throws FloeError `unavailable` when it is older than an earlier one. */
  check(identifier: TableIdentifier, metadata: TableMetadata): void {
    const before = this.#seen.get(keyOf(identifier));
    const now = seenIn(metadata);
    if (before !== undefined && isOlder(now, before)) this.#stale(identifier, before);
    this.#remember(identifier, now);
  }

  /** Takes note of the outcome of a change, which others may have built upon before we hear of it. */
  note(identifier: TableIdentifier, metadata: TableMetadata): void {
    const before = this.#seen.get(keyOf(identifier));
    const now = seenIn(metadata);
    if (before === undefined || !isOlder(now, before)) this.#remember(identifier, now);
  }

  #remember(identifier: TableIdentifier, now: Seen): void {
    const key = keyOf(identifier);
    this.#seen.delete(key);
    this.#seen.set(key, now);
    const oldest = this.#seen.size > MAX_TABLES ? this.#seen.keys().next().value : undefined;
    if (oldest !== undefined) this.#seen.delete(oldest);
  }

  /** The table was dropped, or made by us: what comes next is another one. */
  forget(identifier: TableIdentifier): void {
    this.#seen.delete(keyOf(identifier));
  }

  #stale(identifier: TableIdentifier, before: Seen): void {
    const now = this.#clock.monotonic();
    before.staleSinceMs ??= now;
    if (now - before.staleSinceMs >= this.#believeAfterMs) return;
    throw new FloeError(
      'unavailable',
      `the catalog answered with an older state of ${shownTable(identifier)} than before (sequence number ${before.sequence} was seen): it lags, ask again`,
      { details: { stale: true } },
    );
  }
}

const keyOf = ({ namespace, name }: TableIdentifier) => JSON.stringify([...namespace, name]);

const seenIn = (metadata: TableMetadata): Seen => ({
  uuid: metadata['table-uuid'],
  sequence: metadata['last-sequence-number'],
  updatedMs: metadata['last-updated-ms'],
  staleSinceMs: undefined,
});

function isOlder(now: Seen, before: Seen): boolean {
  if (now.uuid !== before.uuid) return false;
  return now.sequence < before.sequence || now.updatedMs < before.updatedMs;
}

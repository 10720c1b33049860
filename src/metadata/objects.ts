// The objects of the log as things that are replaced, given up and deleted: what compaction swaps, what nobody refers
// to any more, what a crashed writer left behind. The key is unique, and commits use the same index: whoever claims
// a key second loses, so nothing is deleted that a commit refers to (L10).
// Not for: commits and look-ups by offset (metadata/log.ts), the bytes (storage/log).
import { FloeError } from '../base/error.ts';
import type { LeaseToken } from './leases.ts';
import type { FlushRow, NewObjectEntry, ObjectEntry } from './log.ts';

/**
 * `open`: its index is in flush rows; `sealed`: in entries; `deleting`: claimed, its bytes will go; `deleted`: gone,
 * the row waits for the flush rows that still name it.
 */
export type ObjectState = 'open' | 'sealed' | 'deleting' | 'deleted';

export interface LogObject {
  readonly objectId: number;
  readonly key: string;
  readonly kind: 'file' | 'object';
  readonly generation: number;
  readonly state: ObjectState;
  readonly bytes: number;
  readonly createdMs: number;
  /** When it came into this state. */
  readonly changedMs: number;
}

/** What is left of a sealed object. */
export interface ObjectUse {
  readonly object: LogObject;
  /** Bytes, entries (one per partition mostly) and runs that are referred to. */
  readonly liveBytes: number;
  readonly entries: number;
  readonly runs: number;
}

/** Objects whose rows give way, sealed or not. */
export function sourcesOf({
  replaced,
  openObjects,
}: Pick<ReplaceEntries, 'replaced' | 'openObjects'>): readonly number[] {
  return [...new Set([...openObjects, ...replaced.map(({ objectId }) => objectId)])];
}

/** What a swap gets whose sources another may be at work on. */
export function unclaimed({ name, epoch }: LeaseToken): FloeError {
  const text = `${name} with epoch ${epoch} no longer holds its claim to what it has rewritten`;
  return new FloeError('conflict', text, { details: { lease: name } });
}

/** What a swap gets that would overtake an older one. */
export function overtaking(objectId: number): FloeError {
  return new FloeError(
    'conflict',
    `object ${objectId} is older than what is sealed, and still open`,
  );
}

/** A row that gives way: exactly as it was read, or the swap does not happen. */
export type ReplacedEntry = Pick<
  ObjectEntry,
  'partitionId' | 'baseOffset' | 'endOffset' | 'objectId'
>;

/** How far compaction by key has come in a partition (`cleanup.policy=compact`). */
export interface Cleaning {
  readonly partitionId: number;
  /** Records below it have met the keys of all records below it. */
  readonly cleanEnd: number;
  /** Bytes of the rows below it, as they were left. */
  readonly cleanBytes: number;
  /** Of those about how many go with their tombstones once `horizonMs` has passed. */
  readonly tombstoneBytes: number;
  readonly horizonMs: number;
  readonly cleanedMs: number;
}

/** What compaction by key has done to partitions lately. */
export interface Cleaned {
  /** Of `cleanings`: all that was done up to it has been told with it. */
  readonly version: number;
  /** The newest of each partition, in the order in which they were done. */
  readonly cleanings: readonly Pick<Cleaning, 'partitionId' | 'cleanEnd'>[];
}

/** One step of compaction: rows of old objects for rows of a new one, in one transaction. */
export interface ReplaceEntries {
  /** Written and durable. */
  readonly object: { readonly key: string; readonly bytes: number };
  readonly entries: readonly NewObjectEntry[];
  readonly replaced: readonly ReplacedEntry[];
  /**
   * Unsealed objects whose flush rows give way whole: the oldest there are. An older one that stays would be a gap among the
   * rows of its partitions.
   */
  readonly openObjects: readonly number[];
  /** Newest commit in them that was read: markers may have joined them since, then nothing happens. */
  readonly openCommit?: number;
  /** Partitions whose compaction by key the swap completes. */
  readonly cleanings?: readonly Cleaning[];
  /** The right to maintain the log, asserted in the transaction: a zombie's swap fails. Undefined: one node alone. */
  readonly lease?: LeaseToken;
  /** The sources must still be claimed under `lease`: asserted in the transaction, too. */
  readonly claimed?: boolean;
  /**
   * Past this time of the store's clock the swap is refused: a sweep may have taken the object, and forgotten it, since
   * it was written. Undefined: whenever it comes.
   */
  readonly notAfterMs?: number;
  readonly nowMs: number;
}

export interface FreedBytes {
  readonly partitionId: number;
  readonly bytes: number;
}

export interface ObjectsMetadata {
  /** Objects of a state by ascending id, after `afterId`: open ones are in the order of their first commits. */
  list(state: ObjectState, afterId: number, limit: number): Promise<readonly LogObject[]>;
  /** Those of these objects that are not open: sealed, compacted or gone since, whoever did it. */
  notOpen(objectIds: readonly number[]): Promise<readonly number[]>;
  /** Sealed objects by ascending id, after `afterId`, with what is left of them. */
  uses(afterId: number, limit: number): Promise<readonly ObjectUse[]>;
  /** All entries that lie in these objects, by (partition, offset). */
  entriesOf(objectIds: readonly number[]): Promise<readonly ObjectEntry[]>;
  /** Flush rows of these objects, in commit order. */
  flushesOf(objectIds: readonly number[]): Promise<readonly FlushRow[]>;
  /** The first entry of a partition that ends above `fromOffset` and reaches the time; undefined if none does. */
  entryAtTime(
    partitionId: number,
    timestampMs: number,
    fromOffset: number,
  ): Promise<ObjectEntry | undefined>;
  /**
   * Several maintainers rewrite side by side, each under a lease of its own: the holder of `lease` takes these objects for
   * its next piece of work, in place of all that it had. A claim ends with its lease, whatever became of its holder.
   * @returns false, and what it had stays, when another's living claim holds one of them.
   * @throws FloeError `conflict` when the lease is another's.
   */
  claim(lease: LeaseToken, objectIds: readonly number[]): Promise<boolean>;
  /** Objects that other maintainers have claimed under leases that live. */
  claimedByOthers(lease: LeaseToken): Promise<readonly number[]>;
  /**
   * Swaps. Entries of partitions that ended, or below their log start, are left out. Repeating it is harmless.
   * @returns the new object's id. @throws FloeError `conflict` when a source changed, the lease or a claim is another's,
   * an older object is still open, or it comes too late: nothing happened.
   */
  replace(request: ReplaceEntries): Promise<number>;
  /** All partitions that were ever compacted by key; of those that are gone nothing is kept. */
  cleanings(): Promise<readonly Cleaning[]>;
  /** Partitions that were compacted by key after a version of `cleanings`, or ever (−1): a read costs what has changed. */
  cleanedSince(version: number): Promise<Cleaned>;
  /** Compaction by key came to its end without a swap. Partitions that ended are passed over. */
  noteCleaned(cleanings: readonly Cleaning[]): Promise<void>;
  /** Drops entries that lie whole below their log start, and takes their bytes off the partitions' sizes. */
  dropExpired(limit: number): Promise<readonly FreedBytes[]>;
  /** Sealed objects that nothing refers to become `deleting`; they are returned. */
  claimUnreferenced(nowMs: number, limit: number): Promise<readonly LogObject[]>;
  /** Keys that no row knows become `deleting` (orphans of writers that died); the others are left alone. */
  claimKeys(keys: readonly string[], nowMs: number): Promise<readonly string[]>;
  /** Objects that have been `deleting` since before `beforeMs`. */
  deletable(beforeMs: number, limit: number): Promise<readonly LogObject[]>;
  /** The bytes of these objects are gone. */
  forget(objectIds: readonly number[]): Promise<void>;
}

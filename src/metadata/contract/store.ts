// What the contract suites of the metadata store need of a store under test. Not for production code.
import type { FlushCommit } from '../log.ts';
import type { Metadata } from '../metadata.ts';
import type { Cleaning } from '../objects.ts';
import { type TestBatch, testColumns } from '../test-batches.ts';

export interface StoreUnderTest {
  /** May be another object after {@link StoreUnderTest.reopen}. */
  readonly metadata: Metadata;
  /** Sets the store's clock, for stores that have one. */
  at(nowMs: number): Promise<void>;
  /** The process starts again, or another broker takes over: nothing that only memory knew is left. */
  reopen(): Promise<void>;
  /** What a restore from a backup does to it at the end. */
  restored(): Promise<void>;
  /** From now on commits of markers fail with this text, until what is returned is called; where that can be done. */
  failMarkers?(text: string): () => void;
  close(): Promise<void>;
}

/** Stores that keep state in memory write it down, so many rows at a time. */
export async function settled({ metadata }: StoreUnderTest, rows = 100): Promise<void> {
  const { log } = metadata as { log: { checkpoint?: (rows: number) => boolean } };
  while (log.checkpoint?.(rows) === true);
}

/** A fresh, empty store. */
export type OpenStore = () => Promise<StoreUnderTest>;

export const ORDERS = '11111111-1111-4111-8111-111111111111';

/** A topic of that many partitions. @returns their ids. */
export async function createTopic(
  { topics }: Pick<Metadata, 'topics'>,
  partitionCount: number,
  topic: { readonly topicId: string; readonly name: string } = { topicId: ORDERS, name: 'orders' },
): Promise<readonly number[]> {
  const created = await topics.create({ ...topic, partitionCount, config: {}, nowMs: 5 });
  return created.partitions;
}

/** Flushes with ids of their own. */
export class Flushes {
  #count = 0;

  constructor(life = 1) {
    this.#count = life * 1_000_000;
  }

  /** Of batches, to an object of its own unless a key is given. */
  of(
    batches: readonly TestBatch[],
    options: { readonly key?: string; readonly nowMs?: number } = {},
  ): FlushCommit {
    this.#count += 1;
    const flushId = new Uint8Array(16).fill(7);
    new DataView(flushId.buffer).setFloat64(8, this.#count);
    const { key = `wal/${this.#count}`, nowMs = 1000 } = options;
    return {
      flushId,
      object: { key, kind: 'object', generation: 0, bytes: 100 },
      nowMs,
      batches: testColumns(batches),
    };
  }
}

/** Compaction by key of a partition has come to `cleanEnd`. */
export function cleaningOf(partitionId: number, cleanEnd = 6): Cleaning {
  return {
    partitionId,
    cleanEnd,
    cleanBytes: 350,
    tombstoneBytes: 0,
    horizonMs: 9000,
    cleanedMs: 5000,
  };
}

/** Partition ids with offsets of a group staged in open transactions, as stored. */
export async function pendingOffsets(
  transactions: Pick<Metadata['transactions'], 'load'>,
  groupId: string,
): Promise<readonly number[]> {
  const states = await transactions.load();
  const open = states.filter(({ status }) => status === 'Ongoing');
  return [...new Set(open.flatMap(({ offsets }) => [...(offsets.get(groupId)?.keys() ?? [])]))];
}

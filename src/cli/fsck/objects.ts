// The objects of the log behind their rows: each is there with its bytes, its index says what its rows say, and of a sample
// of its blocks every batch has its CRC and fits its entry. What looks wrong is looked at again from its row on: compaction
// or expiry may have taken it meanwhile. Not for: whether rows leave no hole (tiles.ts), what has no row (orphans.ts).
import { type FloeError, isFloeError } from '../../base/error.ts';
import type { Prng } from '../../base/prng.ts';
import { isMarker, type PackedIndex } from '../../metadata/packed-index.ts';
import { checkEntries } from '../../storage/log/block-check.ts';
import { type ByteSource, objectSource } from '../../storage/log/byte-source.ts';
import { entryEndByte, type ObjectRef } from '../../storage/log/entries.ts';
import { loadIndex } from '../../storage/log/object-entries.ts';
import { clusterTag } from '../../storage/log/wal-format.ts';
import type { ObjectStore } from '../../storage/objects/index.ts';
import { generationOf } from '../../storage/paths.ts';
import { eachOf } from '../migrate/objects.ts';
import {
  type BlockRange,
  blocksIn,
  type EntryRange,
  entryFault,
  shareFault,
  shareRange,
} from './entries.ts';
import { Found } from './found.ts';
import type { Ask } from './metadata.ts';
import {
  flushesOf,
  type ObjectRow,
  objectPages,
  objectRow,
  type ShareRow,
  sharesOf,
} from './rows.ts';

export interface ObjectsOptions {
  readonly ask: Ask;
  readonly store: ObjectStore;
  readonly clusterId: string;
  /** Of blocks, in percent; 0: no bytes are read. */
  readonly samplePercent: number;
  readonly prng: Prng;
  /** Only what this topic has. */
  readonly topic?: { readonly name: string; readonly partitionIds: ReadonlySet<number> };
  /** Awaited before what looks wrong is looked at again. */
  readonly pause: () => Promise<void>;
}

export interface CheckedObjects {
  readonly objects: number;
  /** Keys that rows refer to, with what is wrong: the store doesn't have them whole. */
  readonly missing: Found;
  /** Keys whose index or batches aren't what they were. */
  readonly damaged: Found;
  /** Keys whose index says otherwise than the rows that point at it. */
  readonly index: Found;
  readonly sample: { readonly bytes: number; readonly batches: number; readonly blocks: number };
}

/** Objects looked at at once. */
export const AT_ONCE = 16;
/** Blocks that lie near one another are one read of at most this. */
const READ_BYTES = 4 * 1024 * 1024;
const GAP_BYTES = 64 * 1024;

export type ObjectFault = 'missing' | 'damaged' | 'index';

interface Fault {
  readonly kind: ObjectFault;
  readonly text: string;
  /** The block that it was found in. */
  readonly position?: number;
}

export async function checkObjects(options: ObjectsOptions): Promise<CheckedObjects> {
  const { ask, topic, samplePercent, prng, pause } = options;
  const found = { missing: new Found(), damaged: new Found(), index: new Found() };
  const examiner = new Examiner(options);
  let objects = 0;
  for await (const page of objectPages(ask, topic?.name)) {
    objects += page.length;
    await eachOf(page, AT_ONCE, async (row) => {
      const chosen = () => samplePercent >= 100 || prng.next() * 100 < samplePercent;
      let faults = await examiner.examine(row, chosen);
      if (faults.length > 0) {
        await pause();
        const again = await objectRow(ask, row.object_id);
        const places = new Set(faults.map(({ position }) => position));
        faults =
          again === undefined
            ? []
            : await examiner.examine(again, (position) => places.has(position));
      }
      for (const { kind, text } of faults) found[kind].add(`${row.key}: ${text}`);
    });
  }
  return { objects, ...found, sample: examiner.sample };
}

/** Whether the store has at least `bytes` bytes of a key; else what is wrong. A write-ahead file may have room behind its last flush. */
export async function sizeFault(
  store: ObjectStore,
  key: string,
  bytes: number,
): Promise<string | undefined> {
  const head = await store.head(key);
  if (head === undefined) return 'missing';
  return head.size < bytes ? `${head.size} bytes of ${bytes}` : undefined;
}

class Examiner {
  readonly #options: ObjectsOptions;
  readonly #source: ByteSource;
  readonly #tag: Uint8Array;
  readonly sample = { bytes: 0, batches: 0, blocks: 0 };

  constructor(options: ObjectsOptions) {
    this.#options = options;
    this.#source = objectSource(options.store);
    this.#tag = clusterTag(options.clusterId);
  }

  /** @throws FloeError when the store or the database doesn't answer. */
  async examine(
    row: ObjectRow,
    chosen: (blockPosition: number) => boolean,
  ): Promise<readonly Fault[]> {
    try {
      return row.state === 'open' ? await this.#open(row, chosen) : await this.#sealed(row, chosen);
    } catch (caught) {
      if (isFloeError(caught, 'not-found')) return [{ kind: 'missing', text: 'missing' }];
      if (!isFloeError(caught, 'corrupt')) throw caught;
      return [{ kind: 'damaged', text: caught.message }];
    }
  }

  /** Its index is in rows of flushes. */
  async #open(row: ObjectRow, chosen: (position: number) => boolean): Promise<readonly Fault[]> {
    const { ask, store, topic } = this.#options;
    let bytes = row.kind === 'object' ? row.bytes : 0;
    const blocks: BlockRange[] = [];
    for await (const { index } of flushesOf(ask, row.object_id)) {
      for (let n = 0; n < index.count; n += 1)
        if (!isMarker(index.kinds[n]!)) bytes = Math.max(bytes, entryEndByte(index, n));
      for (const block of blocksIn(index, [0, index.count])) {
        const id = index.partitionIds[block.start]!;
        if (topic !== undefined && !topic.partitionIds.has(id)) continue;
        if (this.#reads && chosen(block.position)) blocks.push(block);
      }
    }
    const text = await sizeFault(store, row.key, bytes);
    if (text !== undefined) return [{ kind: 'missing', text }];
    return this.#blocks(row, blocks);
  }

  /** Its index is in its footer. */
  async #sealed(row: ObjectRow, chosen: (position: number) => boolean): Promise<readonly Fault[]> {
    const { ask, store, topic } = this.#options;
    const text = await sizeFault(store, row.key, row.bytes);
    if (text !== undefined) return [{ kind: 'missing', text }];
    if (!this.#reads) return [];
    const faults: Fault[] = [];
    const blocks: BlockRange[] = [];
    const indexes = new Map<number, PackedIndex>();
    for (const share of await sharesOf(ask, row.object_id)) {
      if (topic !== undefined && !topic.partitionIds.has(share.partition_id)) continue;
      const index = indexes.get(share.index_position) ?? (await this.#index(row, share));
      indexes.set(share.index_position, index);
      const range: EntryRange = shareRange(index, share);
      const fault = shareFault(index, share, range);
      if (fault !== undefined) faults.push({ kind: 'index', text: fault });
      for (const block of blocksIn(index, range)) if (chosen(block.position)) blocks.push(block);
    }
    return [...faults, ...(await this.#blocks(row, blocks))];
  }

  get #reads(): boolean {
    return this.#options.samplePercent > 0;
  }

  #index(row: ObjectRow, share: ShareRow): Promise<PackedIndex> {
    return loadIndex(
      this.#source,
      {
        objectId: row.object_id,
        objectKey: row.key,
        indexPosition: share.index_position,
        indexLength: share.index_length,
      },
      'maintenance',
    );
  }

  async #blocks(row: ObjectRow, blocks: readonly BlockRange[]): Promise<readonly Fault[]> {
    const object = { objectId: row.object_id, key: row.key, generation: generationOf(row.key) };
    const faults: Fault[] = [];
    for (const group of together(blocks.toSorted((a, b) => a.position - b.position))) {
      const position = group[0]!.position;
      const end = group.reduce((last, { endPosition }) => Math.max(last, endPosition), 0);
      const bytes = new Uint8Array(end - position);
      await this.#source.read(object, [{ position, into: bytes }], { purpose: 'maintenance' });
      for (const block of group) {
        const text = this.#block(object, block, { position, bytes });
        if (text !== undefined) faults.push({ kind: 'damaged', text, position: block.position });
      }
    }
    return faults;
  }

  #block(
    object: ObjectRef,
    { index, start, end, position: blockPosition }: BlockRange,
    { position, bytes }: { readonly position: number; readonly bytes: Uint8Array },
  ): string | undefined {
    const partitionOf = (n: number) => index.partitionIds[n]!;
    try {
      checkEntries(
        { object, position, bytes, clusterTag: this.#tag },
        { columns: index, start, end, partitionOf, deep: true },
      );
    } catch (caught) {
      if (!isFloeError(caught, 'corrupt')) throw caught;
      return `${withoutKey(caught, object)}, in ${offsetsOf(index, start, end)}`;
    }
    this.sample.blocks += 1;
    for (let n = start; n < end; n += 1) {
      const from = index.positions[n]! - position;
      const entry = bytes.subarray(from, from + index.lengths[n]!);
      const fault = entryFault(index, n, entry);
      if (fault !== undefined)
        return `has ${fault} at ${blockPosition}, in ${offsetsOf(index, start, end)}`;
      this.sample.bytes += entry.length;
      this.sample.batches += index.batchCounts[n]!;
    }
    return undefined;
  }
}

/** Blocks by position, cut into reads. */
function* together(blocks: readonly BlockRange[]): Generator<readonly BlockRange[]> {
  let group: BlockRange[] = [];
  let end = 0;
  for (const block of blocks) {
    const first = group[0];
    const joins =
      first !== undefined &&
      block.position - end <= GAP_BYTES &&
      block.endPosition - first.position <= READ_BYTES;
    if (!joins && first !== undefined) {
      yield group;
      group = [];
    }
    group.push(block);
    end = Math.max(joins ? end : 0, block.endPosition);
  }
  if (group.length > 0) yield group;
}

const offsetsOf = (
  { partitionIds, baseOffsets, offsetSpans }: PackedIndex,
  start: number,
  end: number,
) =>
  `partition id ${partitionIds[start]}, offsets ${baseOffsets[start]} to ${baseOffsets[end - 1]! + offsetSpans[end - 1]! - 1}`;

/** The key stands before the text already. */
function withoutKey({ message }: FloeError, { key, generation }: ObjectRef): string {
  const named = `${key}, generation ${generation}, `;
  return message.startsWith(named) ? message.slice(named.length) : message;
}

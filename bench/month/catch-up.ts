// A consumer far behind: sixteen partitions at a time from the start of their logs, planned by the product's index look-up,
// block loader and block cache as its reader does it, without cutting bytes into batches. Counts what it was served.
import { BlockCache } from '../../src/storage/log/block-cache.ts';
import { BlockLoader, type Piece } from '../../src/storage/log/block-loader.ts';
import { objectSource } from '../../src/storage/log/byte-source.ts';
import { entryAt, entryEnd, type Segment } from '../../src/storage/log/entries.ts';
import { ObjectEntries } from '../../src/storage/log/object-entries.ts';
import { readsOf } from '../../src/storage/log/read-settings.ts';
import type { LogWorld } from './log-world.ts';
import { MIB } from './workload.ts';

/** Partitions that one consumer fetches together. */
const AT_ONCE = 16;
/** Kafka's `max.partition.fetch.bytes`. */
const FETCH_BYTES = MIB;

export interface CatchUpTally {
  /** Bytes of batches served. */
  bytes: number;
  /** GETs of data and of indexes. */
  gets: number;
}

export class CatchUp {
  readonly tally: CatchUpTally = { bytes: 0, gets: 0 };
  readonly #world: LogWorld;
  readonly #entries: ObjectEntries;
  readonly #loader: BlockLoader;
  readonly #ahead: number;

  constructor(world: LogWorld) {
    this.#world = world;
    const settings = readsOf(world.settings, true);
    const store = world.store.for('catch-up');
    const counted = objectSource({
      uri: store.uri,
      put: store.put.bind(store),
      head: store.head.bind(store),
      list: store.list.bind(store),
      delete: store.delete.bind(store),
      get: (key, options) => {
        this.tally.gets += 1;
        return store.get(key, options);
      },
    });
    this.#entries = new ObjectEntries({
      metadata: world.metadata,
      source: counted,
      maxIndexBytes: settings['log.read.index.bytes'],
      shared: { clock: world.clock, rowsLifetimeMs: world.settings['log.follow.rows.lifetime.ms'] },
    });
    this.#loader = new BlockLoader(new BlockCache(settings['log.read.cache.bytes']), counted, {
      maxGap: settings['log.read.gap.bytes'],
      maxRange: settings['log.read.range.bytes'],
      ...settings.remote,
    });
    this.#ahead = settings['log.read.ahead.bytes'];
  }

  /** Reads the older half of these partitions. */
  async read(partitionIds: readonly number[]): Promise<void> {
    const waiting = [...partitionIds];
    const one = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
        await this.#readPartition(next);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
  }

  async #readPartition(partitionId: number): Promise<void> {
    const [log] = await this.#world.metadata.partitions([partitionId]);
    let offset = log!.logStartOffset;
    const untilOffset = this.#world.metadata.restingEnd(partitionId);
    while (offset < untilOffset) {
      // Retention goes on while it is read.
      offset = Math.max(
        offset,
        (await this.#world.metadata.partitions([partitionId]))[0]!.logStartOffset,
      );
      offset = await this.#fetch(partitionId, offset, untilOffset);
    }
  }

  /** One fetch of one partition. @returns where the next begins. */
  async #fetch(partitionId: number, offset: number, endOffset: number): Promise<number> {
    const purpose = 'consumer';
    const wantedBytes = FETCH_BYTES + this.#ahead;
    const segments = await this.#entries.segments(partitionId, offset, { wantedBytes, purpose });
    const request = { partitionId, purpose, maxBytes: FETCH_BYTES, endOffset } as const;
    const pieces: Piece[] = [];
    let [bytes, next] = [0, offset];
    for (const segment of segments) {
      let n = entryAt(segment.columns, [segment.start, segment.end], next);
      while (n < segment.end && bytes < FETCH_BYTES) {
        const piece = this.#loader.piece(
          { ...request, why: pieces.length > 0 ? 'read' : 'must' },
          segment,
          n,
        );
        if (piece === undefined) break;
        pieces.push(piece);
        for (; n < piece.end && bytes < FETCH_BYTES; n += 1) {
          bytes += segment.columns.lengths[n]!;
          next = entryEnd(segment.columns, n);
        }
      }
    }
    for (const { block } of pieces) await block?.ready;
    this.#readAhead(request, segments, next);
    this.#loader.spent(
      pieces.filter((piece) => entryEnd(piece.segment.columns, piece.end - 1) <= next),
    );
    this.#loader.release(pieces);
    this.tally.bytes += bytes;
    return next > offset ? next : endOffset;
  }

  #readAhead(
    request: { readonly partitionId: number; readonly purpose: 'consumer' },
    segments: readonly Segment[],
    offset: number,
  ): void {
    this.#loader.ahead(request, entriesAfter(segments, offset), { from: 0, distance: this.#ahead });
  }
}

function* entriesAfter(
  segments: readonly Segment[],
  offset: number,
): Generator<readonly [Segment, number]> {
  for (const segment of segments) {
    let n = entryAt(segment.columns, [segment.start, segment.end], offset);
    for (; n < segment.end; n += 1) yield [segment, n];
  }
}

// The sequencer: takes flushes, makes them durable in the local WAL, commits all that wait in one metadata
// transaction (group commit), answers. A plain object: sequencer-thread.ts gives it a thread, simulation none.
// Order is the whole point: write, sync, commit, reply (L3, L11). Not for: when a flush is sent (front-log.ts).
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import { type BatchColumns, groupByPartition } from '../../metadata/batch-columns.ts';
import type { CommittedFlush, FlushCommit, FlushObject } from '../../metadata/log.ts';
import { sqliteError } from '../../metadata/sqlite/database.ts';
import type { SqliteMetadata } from '../../metadata/sqlite/index.ts';
import type { DiskSpace } from './disk-space.ts';
import { FileIndex } from './file-index.ts';
import { layoutFlush } from './layout.ts';
import {
  columnsOf,
  type FlushReply,
  type FlushRequest,
  type SequencerPort,
} from './sequencer-port.ts';
import type { SlabPool } from './slab.ts';
import type { WalFiles } from './wal-file.ts';
import { buildFooter, clusterTag } from './wal-format.ts';

export interface SequencerOptions {
  readonly metadata: SqliteMetadata;
  readonly clusterId: string;
  readonly slabs: SlabPool;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Local WAL; undefined when flushes arrive durable. */
  readonly wal?: WalFiles;
  readonly space?: DiskSpace;
  /** Told after an object's flush rows gave way to entries. */
  readonly onSealed?: (objectId: number) => void;
}

interface Waiting {
  readonly request: FlushRequest;
  readonly batches: BatchColumns;
  readonly resolve: (reply: FlushReply) => void;
  readonly reject: (error: FloeError) => void;
}

interface Durable {
  readonly waiting: Waiting;
  readonly order: Uint32Array;
  readonly object: FlushObject;
}

/** More flushes than this wait for the next transaction, so that other metadata calls get their turn. */
const MAX_GROUP = 64;

export class Sequencer implements SequencerPort {
  readonly #options: SequencerOptions;
  readonly #tag: Uint8Array;
  #queue: Waiting[] = [];
  #scheduled = false;
  #fileIndex: FileIndex | undefined;
  #commits = 0;

  constructor(options: SequencerOptions) {
    this.#options = options;
    this.#tag = clusterTag(options.clusterId);
  }

  /** Metadata transactions that committed flushes so far. */
  get commits(): number {
    return this.#commits;
  }

  submit(request: FlushRequest): Promise<FlushReply> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ request, batches: columnsOf(request.columns), resolve, reject });
      if (this.#scheduled) return;
      this.#scheduled = true;
      setImmediate(() => this.#drain());
    });
  }

  async retireFiles(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.#options.wal?.retire(key);
  }

  #drain(): void {
    const group = this.#admit(this.#queue.splice(0, MAX_GROUP));
    if (group.length > 0) this.#process(group);
    this.#sealWhenFull();
    this.#scheduled = this.#queue.length > 0;
    if (this.#scheduled) setImmediate(() => this.#drain());
  }

  /** Refuses what would fill the disk, before a byte of it is written. */
  #admit(group: readonly Waiting[]): readonly Waiting[] {
    try {
      this.#options.space?.check();
      return group;
    } catch (caught) {
      const error = FloeError.from(caught);
      for (const { request, reject } of group) if (request.object === undefined) reject(error);
      return group.filter(({ request }) => request.object !== undefined);
    }
  }

  #process(group: readonly Waiting[]): void {
    try {
      this.#writeAndCommit(group);
    } catch (caught) {
      if (caught instanceof Error && caught.name === 'AssertionError') throw caught;
      this.#options.logger.warn({ error: String(caught), flushes: group.length }, 'flush failed');
      this.#options.wal?.abandon(caught);
      this.#fileIndex = undefined;
      this.#retry(group, caught);
    }
  }

  /** Once more in a new file, each flush alone, so that one that can't be committed fails alone. */
  #retry(group: readonly Waiting[], first: unknown): void {
    for (const waiting of group) {
      try {
        if (FloeError.from(first).code === 'exhausted') throw first;
        this.#writeAndCommit([waiting]);
      } catch (caught) {
        const error = sqliteError(caught, 'flush');
        if (error.code === 'exhausted') this.#options.space?.ranOut();
        this.#options.wal?.abandon(caught);
        this.#fileIndex = undefined;
        waiting.reject(error);
      }
    }
  }

  #writeAndCommit(group: readonly Waiting[]): void {
    const durable = group.map((waiting) => this.#write(waiting));
    if (durable.some(({ waiting }) => waiting.request.object === undefined))
      this.#options.wal!.sync();
    const nowMs = this.#options.clock.now();
    const committed = this.#options.metadata.log.commitNow(
      durable.map(({ waiting, object }): FlushCommit => {
        const { flushId } = waiting.request;
        return { flushId, object, nowMs, batches: waiting.batches };
      }),
    );
    this.#commits += 1;
    for (const [n, flush] of committed.entries()) this.#answer(durable[n]!, flush, nowMs);
  }

  /** The flush as bytes in the WAL, not yet synced; nothing to do when it is durable already. */
  #write(waiting: Waiting): Durable {
    const { request, batches } = waiting;
    const order = groupByPartition(batches);
    if (request.object !== undefined) return { waiting, order, object: request.object };
    const { wal, slabs } = this.#options;
    assert(wal !== undefined, 'a flush without an object needs a local WAL');
    const { key, number, position } = wal.current();
    const layout = layoutFlush({
      batches,
      order,
      slab: slabs.slab(request.slab).bytes,
      position,
      clusterTag: this.#tag,
      generation: number,
      flushId: request.flushId,
    });
    wal.write(layout);
    const object: FlushObject = {
      key,
      kind: 'file',
      generation: number,
      bytes: position + layout.bytes,
    };
    return { waiting, order, object };
  }

  #answer({ waiting, order, object }: Durable, flush: CommittedFlush, committedMs: number): void {
    if (object.kind === 'file' && flush.fresh) {
      this.#fileIndex ??= new FileIndex(flush.objectId);
      this.#fileIndex.add(flush.index, flush.commitNumber);
    }
    const { commitNumber, objectId, errorCodes, baseOffsets, duplicates, index } = flush;
    waiting.resolve({
      commitNumber,
      committedMs,
      objectId,
      objectKey: flush.objectKey,
      generation: flush.generation,
      columns: waiting.request.columns,
      errorCodes,
      baseOffsets,
      duplicates,
      order,
      index,
    });
  }

  #sealWhenFull(): void {
    if (this.#options.wal?.full === true) this.seal();
  }

  /** Ends the current file. A failure leaves its flush rows as its index: it is sealed at the next start. */
  seal(): void {
    const { wal, metadata, logger } = this.#options;
    const fileIndex = this.#fileIndex;
    this.#fileIndex = undefined;
    if (wal === undefined || fileIndex === undefined) return;
    try {
      const merged = fileIndex.merge();
      let position = 0;
      const { bytes } = wal.seal((at, generation) => {
        position = at;
        return buildFooter(at, merged.bytes, { clusterId: this.#tag, generation });
      });
      const entries = fileIndex.entries(merged, position);
      metadata.log.sealNow({ objectId: fileIndex.objectId, bytes, entries });
      this.#options.onSealed?.(fileIndex.objectId);
    } catch (caught) {
      logger.warn({ error: String(caught) }, 'sealing failed: the file keeps its flush rows');
      wal.abandon(caught);
    }
  }

  /** Stops after what is queued. */
  async stop(): Promise<void> {
    while (this.#scheduled) await new Promise((resolve) => setImmediate(resolve));
    const stopped = new FloeError('cancelled', 'the sequencer has stopped');
    for (const waiting of this.#queue.splice(0)) waiting.reject(stopped);
    this.#options.wal?.close();
  }
}

// The sequencer: takes flushes, makes them durable in the local WAL, commits all that wait in one metadata
// transaction (group commit), answers. A plain object: sequencer-thread.ts gives it a thread, simulation none.
// Order is the whole point: write, sync, commit, reply (L3, L11). Not for: when a flush is sent (front-log.ts).
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import { type BatchColumns, groupByPartition } from '../../metadata/batch-columns.ts';
import type { CommittedFlush, FlushCommit, FlushObject, FlushRow } from '../../metadata/log.ts';
import { sqliteError } from '../../metadata/sqlite/database.ts';
import type { SqliteMetadata } from '../../metadata/sqlite/index.ts';
import type { DiskSpace } from './disk-space.ts';
import { FileIndex } from './file-index.ts';
import { layoutFlush } from './layout.ts';
import type { Sealer } from './seal.ts';
import {
  columnsOf,
  type FlushReply,
  type FlushRequest,
  type SequencerPort,
} from './sequencer-port.ts';
import type { SlabPool } from './slab.ts';
import type { WalFiles } from './wal-file.ts';
import { clusterTag } from './wal-format.ts';

export interface SequencerOptions {
  readonly metadata: SqliteMetadata;
  readonly clusterId: string;
  readonly slabs: SlabPool;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Local WAL; undefined when flushes arrive durable. */
  readonly wal?: WalFiles;
  /** A file is sealed at so many commits, however few bytes they take. */
  readonly fileCommits: number;
  readonly space?: DiskSpace;
  readonly sealer?: Sealer;
  /** Told of commits of markers. */
  readonly onMarkers?: (commit: FlushRow) => void;
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
  /** True from the moment a commit may refer to what was just written. */
  #committing = false;
  /** Files of commits that failed. */
  readonly #doubtful: string[] = [];
  #commits = 0;

  constructor(options: SequencerOptions) {
    this.#options = options;
    this.#tag = clusterTag(options.clusterId);
    options.metadata.log.markerHost = {
      place: () => this.#markerPlace(),
      committed: (commit) => this.#markersCommitted(commit),
      failed: (caught) => this.#markersFailed(caught),
    };
  }

  /** Markers go with the file that is being filled, though they take no bytes: its index is the newest. */
  #markerPlace(): FlushObject | undefined {
    const file = this.#options.wal?.current();
    if (file === undefined) return undefined;
    return { key: file.key, kind: 'file', generation: file.number, bytes: file.position };
  }

  #markersCommitted(commit: FlushRow): void {
    const { objectId, objectKey: key, generation, index, commitNumber } = commit;
    if (this.#options.wal !== undefined) {
      this.#fileIndex ??= new FileIndex({ objectId, key, generation });
      this.#fileIndex.add(index, commitNumber);
      if (this.#tooManyCommits) this.#schedule();
    }
    this.#options.onMarkers?.(commit);
  }

  /** As with a flush: whether the commit happened shows after a crash only. */
  #markersFailed(caught: unknown): void {
    this.#committing = true;
    this.#abandon(caught);
  }

  /** Metadata transactions that committed flushes so far. */
  get commits(): number {
    return this.#commits;
  }

  submit(request: FlushRequest): Promise<FlushReply> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ request, batches: columnsOf(request.columns), resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#drain());
  }

  async retireFiles(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.#options.wal?.retire(key);
  }

  async roll(): Promise<void> {
    if (this.#fileIndex !== undefined) this.seal();
  }

  #drain(): void {
    const taken = this.#queue.splice(0, MAX_GROUP);
    const group = this.#admit(taken.filter((waiting) => !this.#recall(waiting)));
    if (group.length > 0) this.#process(group);
    this.#sealWhenFull();
    this.#scheduled = this.#queue.length > 0;
    if (this.#scheduled) setImmediate(() => this.#drain());
  }

  /** A retry after a lost reply: the first outcome, if there was one, before anything is written again. */
  #recall(waiting: Waiting): boolean {
    if (waiting.request.again !== true) return false;
    const { request, batches } = waiting;
    const { flushId, riders } = request;
    const known = this.#options.metadata.log.recall(flushId, batches, riders);
    if (known === undefined) return false;
    const order = groupByPartition(batches);
    this.#reply({ waiting, order }, known, this.#options.clock.now());
    return true;
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
      this.#abandon(caught);
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
        this.#abandon(caught);
        waiting.reject(error);
      }
    }
  }

  #writeAndCommit(group: readonly Waiting[]): void {
    this.#committing = false;
    const durable = group.map((waiting) => this.#write(waiting));
    if (durable.some(({ waiting }) => waiting.request.object === undefined))
      this.#options.wal!.sync();
    const nowMs = this.#options.clock.now();
    this.#committing = true;
    const committed = this.#options.metadata.log.commitNow(
      durable.map(({ waiting, object }): FlushCommit => {
        const { flushId, riders } = waiting.request;
        const flush = { flushId, object, nowMs, batches: waiting.batches };
        return riders === undefined ? flush : { ...flush, riders };
      }),
    );
    this.#commits += 1;
    for (const key of this.#doubtful.splice(0)) this.#options.wal?.remove(key);
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
      const { key, generation } = object;
      this.#fileIndex ??= new FileIndex({ objectId: flush.objectId, key, generation });
      this.#fileIndex.add(flush.index, flush.commitNumber);
    }
    this.#reply({ waiting, order }, flush, committedMs);
  }

  #reply(
    { waiting, order }: Pick<Durable, 'waiting' | 'order'>,
    flush: CommittedFlush,
    committedMs: number,
  ): void {
    const { commitNumber, objectId, errorCodes, baseOffsets, duplicates, riders, index } = flush;
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
      ...(riders === undefined ? {} : { riders }),
      order,
      index,
    });
  }

  /** Gives the current file up; what was committed in it is sealed, one in which nothing was must not stay. */
  #abandon(caught: unknown): void {
    const key = this.#options.wal?.abandon(caught);
    if (key !== undefined && this.#fileIndex === undefined) {
      // A commit that failed may yet be found done after a crash, until the next one has taken its place.
      if (this.#committing) this.#doubtful.push(key);
      else this.#options.wal!.remove(key);
    }
    this.#sealFile();
  }

  #sealWhenFull(): void {
    if (this.#options.wal?.full === true || this.#tooManyCommits) this.seal();
  }

  get #tooManyCommits(): boolean {
    return this.#fileIndex !== undefined && this.#fileIndex.commits >= this.#options.fileCommits;
  }

  /** Ends the current file; the next flush opens another. */
  seal(): void {
    this.#options.wal?.finish();
    this.#sealFile();
  }

  #sealFile(): void {
    const index = this.#fileIndex;
    this.#fileIndex = undefined;
    if (index !== undefined) this.#options.sealer?.add(index);
  }

  /** Stops after what is queued. */
  async stop(): Promise<void> {
    while (this.#scheduled) await new Promise((resolve) => setImmediate(resolve));
    const stopped = new FloeError('cancelled', 'the sequencer has stopped');
    for (const waiting of this.#queue.splice(0)) waiting.reject(stopped);
    this.#options.wal?.finish();
  }
}

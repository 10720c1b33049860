// A log for tests of the read side and of background work: the real sequencer over real files in a temporary folder,
// in-thread, with every read counted. Not for production code.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng, uuidToBytes } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import {
  batchEnd,
  baseOffset as headerOffset,
  lastOffsetDelta,
} from '../../protocol/record-batch.ts';
import { buildBatch, type RecordInput } from '../../protocol/record-builder.ts';
import { countingStore } from '../objects/decorators/counting.ts';
import { LocalObjectStore } from '../objects/local.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { type ByteSource, objectSource } from './byte-source.ts';
import type { ColdRead, ColdReadRequest } from './cold-reader.ts';
import { nodeDisk } from './disk.ts';
import type { AppendItem } from './log.ts';
import { OpenFlush } from './open-flush.ts';
import { readSettings } from './read-settings.ts';
import { LogReader } from './reader.ts';
import { type SequencerHost, startSequencer } from './sequencer-host.ts';
import { columnsOf, type FlushReply } from './sequencer-port.ts';
import { SlabPool } from './slab.ts';
import { clusterTag } from './wal-format.ts';

export const TEST_CLUSTER = 'AAECAwQFBgcICQoLDA0ODw';

export interface TestLogOptions {
  readonly fileBytes?: number;
  readonly slabBytes?: number;
  readonly settings?: Readonly<Record<string, string>>;
}

/** One record batch of one partition. */
export interface TestAppend {
  readonly partitionId: number;
  readonly records: readonly RecordInput[];
  readonly compression?: number;
}

export class TestLog {
  readonly clock = new ManualClock();
  readonly ids = seededIds(seededPrng(1));
  readonly metadata: SqliteMetadata = openSqliteMetadata(':memory:');
  readonly root = mkdtempSync(join(tmpdir(), 'floe-log-'));
  readonly slabs: SlabPool;
  /** Every get of the store: key and range. */
  readonly gets: { readonly key: string; readonly bytes: number }[] = [];
  host!: SequencerHost;
  store!: ObjectStore;
  source!: ByteSource;
  reader!: LogReader;
  readonly #options: TestLogOptions;

  private constructor(options: TestLogOptions) {
    this.#options = options;
    this.slabs = SlabPool.create(options.slabBytes ?? 256 * 1024, 2);
  }

  static async open(options: TestLogOptions = {}): Promise<TestLog> {
    const log = new TestLog(options);
    const local = await LocalObjectStore.open(log.root, log);
    log.store = countingStore(local, log.clock, ({ operation, key, bytes }) => {
      if (operation === 'get') log.gets.push({ key, bytes });
    });
    log.source = objectSource(log.store);
    log.host = startSequencer({
      settings: {
        clusterId: TEST_CLUSTER,
        fileBytes: options.fileBytes ?? 1024 * 1024,
        fileCommits: 32_768,
        extendBytes: 64 * 1024,
        recycleFiles: 1,
        directIo: true,
        reserveBytes: 0,
        ballastBytes: 0,
        producerExpirationMs: 86_400_000,
        followHorizonMs: 3_600_000,
        giveUpMs: 30_000,
      },
      metadata: log.metadata,
      slabs: log.slabs,
      clock: log.clock,
      logger: silentLogger,
      disk: nodeDisk(log.root),
      onSealed: (objectId) => log.reader.sealed(objectId),
    });
    log.reader = log.openReader();
    return log;
  }

  /** A further reader over the same log, as after a restart; follow its flushes with `follow`. */
  openReader(source: ByteSource = this.source): LogReader {
    return new LogReader({
      clusterTag: clusterTag(TEST_CLUSTER),
      source,
      metadata: this.metadata,
      settings: resolveSettings(readSettings, {
        'log.read.cache.bytes': String(4 * 1024 * 1024),
        'log.read.cold.cache.bytes': String(4 * 1024 * 1024),
        'log.read.crc.sample': '1',
        ...this.#options.settings,
      }),
      logger: silentLogger,
      metrics: noMetrics,
    });
  }

  /** Partition ids of a new topic. */
  async createTopic(partitionCount: number, name = 'topic'): Promise<readonly number[]> {
    const topicId = this.ids.uuid();
    const topic = await this.metadata.topics.create({
      topicId,
      name,
      partitionCount,
      config: {},
      nowMs: this.clock.now(),
    });
    return topic.partitions;
  }

  /** One flush of these batches, durable and committed; the reader knows of it. */
  async append(appends: readonly TestAppend[]): Promise<FlushReply> {
    return this.appendItems(appends.map(toItem));
  }

  async appendItems(items: readonly AppendItem[]): Promise<FlushReply> {
    const { columns } = this.lay(items);
    const flushId = uuidToBytes(this.ids.uuid());
    const reply = await this.host.sequencer.submit({ flushId, columns, slab: 0 });
    this.reader.follow(reply);
    return reply;
  }

  /** Batches in slab 0 and as columns, as the front leaves them to a flush. */
  lay(items: readonly AppendItem[]) {
    const flush = new OpenFlush(this.slabs.slab(0), 0, 0);
    const request = { items, outcomes: [], remaining: items.length, resolve: () => {} };
    for (const [n, item] of items.entries()) flush.add(item, request, n);
    const columns = flush.take();
    return { columns, batches: columnsOf(columns), slab: this.slabs.slab(0).bytes };
  }

  /** Seals the current file; the reader has heard of it. */
  async seal(): Promise<void> {
    this.host.sequencer.seal();
    await new Promise((resolve) => setImmediate(resolve));
  }

  async endOf(partitionId: number): Promise<number> {
    const [partition] = await this.metadata.log.partitions([partitionId]);
    return partition!.highWatermark;
  }

  /** A read as the front would ask for it. */
  async read(
    partitionId: number,
    offset: number,
    more: Partial<ColdReadRequest> & { readonly reader?: LogReader } = {},
  ): Promise<ColdRead> {
    const { reader = this.reader, ...rest } = more;
    const endOffset = await this.endOf(partitionId);
    return reader.read({
      partitionId,
      offset,
      endOffset,
      maxBytes: 1024 * 1024,
      purpose: 'consumer',
      ...rest,
    });
  }

  /** All batches of a partition from `offset` on, read in steps; checks that offsets have no gap. */
  async readAll(
    partitionId: number,
    more: Partial<ColdReadRequest> & { readonly reader?: LogReader } = {},
  ): Promise<TestBatch[]> {
    const batches: TestBatch[] = [];
    const end = await this.endOf(partitionId);
    for (let offset = more.offset ?? 0; offset < end; ) {
      const found = await this.read(partitionId, offset, more);
      const before = offset;
      for (const batch of batchesOf(found)) {
        batches.push(batch);
        offset = batch.baseOffset + batch.records;
      }
      found.release();
      if (offset <= before) throw new Error(`a read at ${offset} of ${end} did not advance`);
    }
    return batches;
  }

  async stop(): Promise<void> {
    await this.reader.stop();
    await this.host.stop();
    this.metadata.close();
    rmSync(this.root, { recursive: true });
  }
}

export interface TestBatch {
  readonly baseOffset: number;
  readonly endOffset: number;
  readonly records: number;
  /** A copy. */
  readonly bytes: Buffer;
}

/** The batches of a read, taken apart. */
export function batchesOf(found: Pick<ColdRead, 'runs'>): TestBatch[] {
  const batches: TestBatch[] = [];
  for (const run of found.runs) {
    let { baseOffset } = run;
    for (let at = 0; at < run.bytes.length; ) {
      const end = batchEnd(run.bytes, at);
      if (end === -1) throw new Error('a run holds whole batches');
      if (run.patched) baseOffset = headerOffset(run.bytes, at);
      const records = lastOffsetDelta(run.bytes, at) + 1;
      const endOffset = baseOffset + records;
      const bytes = Buffer.from(run.bytes.slice(at, end));
      batches.push({ baseOffset, endOffset, records, bytes });
      baseOffset = endOffset;
      at = end;
    }
  }
  return batches;
}

/** A batch of real records as an item to append. */
export function toItem({ partitionId, records, compression }: TestAppend): AppendItem {
  const bytes = buildBatch(records, compression === undefined ? {} : { compression });
  const maxTimestamp = Math.max(...records.map((record) => record.timestamp ?? -1));
  return {
    partitionId,
    bytes,
    recordCount: records.length,
    lastOffsetDelta: records.length - 1,
    producerId: -1,
    producerEpoch: -1,
    baseSequence: -1,
    maxTimestamp,
    logAppendTimeMs: -1,
  };
}

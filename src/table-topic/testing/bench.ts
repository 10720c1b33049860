// Everything around table topics, small: metadata and catalog as in production, the log in memory, files in a store
// of choice, schemas in a map. Used by the tests of this folder and by bench/.
import { type Clock, systemClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { type Logger, silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { catalogSettings, EmbeddedCatalog, Warehouse } from '../../catalog/index.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import type { Topic } from '../../metadata/topics.ts';
import { buildBatch, type RecordInput } from '../../protocol/record-builder.ts';
import type {
  RegisteredSchema,
  SchemaSource,
  SchemaType,
  SubjectVersion,
} from '../../schema-registry/schema-source.ts';
import { MemoryObjectStore } from '../../storage/objects/index.ts';
import type { ObjectStore } from '../../storage/objects/object-store.ts';
import { startTableTopics, type TableTopicsDeps } from '../index.ts';
import { tableSettings } from '../settings/index.ts';
import type { TableTopics } from '../table-topics.ts';
import { MemoryLog } from './memory-log.ts';

/** A registry in a map; `down` makes every call fail as an unreachable one does. */
export class MemorySchemas implements SchemaSource {
  down = false;
  readonly #byId = new Map<number, RegisteredSchema>();
  readonly #subjects = new Map<string, number[]>();

  #check(): void {
    if (this.down) throw new FloeError('unavailable', 'the schema registry does not answer');
  }

  async byId(id: number): Promise<RegisteredSchema> {
    this.#check();
    const found = this.#byId.get(id);
    if (found === undefined) throw new FloeError('not-found', `no schema ${id}`);
    return found;
  }

  async byGuid(guid: string): Promise<RegisteredSchema> {
    return this.byId(Number(guid.slice(-12)));
  }

  async latest(subject: string): Promise<SubjectVersion> {
    this.#check();
    const ids = this.#subjects.get(subject);
    if (ids === undefined) throw new FloeError('not-found', `no subject ${subject}`);
    return { ...this.#byId.get(ids.at(-1)!)!, subject, version: ids.length };
  }

  async versionOf(subject: string, schemaId: number): Promise<number | undefined> {
    const at = this.#subjects.get(subject)?.indexOf(schemaId) ?? -1;
    return at < 0 ? undefined : at + 1;
  }

  async register(subject: string, schema: string, type: SchemaType = 'AVRO'): Promise<number> {
    const id = this.#byId.size + 1;
    const guid = `00000000-0000-0000-0000-${String(id).padStart(12, '0')}`;
    this.#byId.set(id, { id, guid, type, schema, references: [], resolved: new Map() });
    this.#subjects.set(subject, [...(this.#subjects.get(subject) ?? []), id]);
    return id;
  }
}

export interface BenchOptions {
  readonly clock?: Clock;
  readonly store?: ObjectStore;
  readonly metadata?: SqliteMetadata;
  readonly logger?: Logger;
  readonly seed?: number;
  readonly settings?: Readonly<Record<string, string>>;
  readonly threads?: TableTopicsDeps['threads'];
  /** Wraps the catalog, to let it fail. */
  readonly wrapCatalog?: (catalog: Catalog) => Catalog;
}

/** The surroundings, and the service once `start` was called. */
export class Bench {
  readonly log = new MemoryLog();
  readonly schemas = new MemorySchemas();
  readonly clock: Clock;
  readonly store: ObjectStore;
  readonly metadata: SqliteMetadata;
  readonly directory: TopicDirectory;
  readonly warehouse: Warehouse;
  readonly catalog: Catalog;
  readonly #options: BenchOptions;
  #seed: number;
  tables!: TableTopics;

  private constructor(options: BenchOptions, directory: TopicDirectory, metadata: SqliteMetadata) {
    this.#options = options;
    this.#seed = options.seed ?? 1;
    this.clock = options.clock ?? systemClock;
    this.store = options.store ?? new MemoryObjectStore(this.clock, 'floe');
    this.metadata = metadata;
    this.log.stages = metadata.tables;
    this.directory = directory;
    this.warehouse = new Warehouse(this.store);
    const catalog = new EmbeddedCatalog({
      metadata: metadata.catalog,
      warehouse: this.warehouse,
      clock: this.clock,
      ids: this.seeded(),
      logger: silentLogger,
      settings: resolveSettings(catalogSettings, {}),
    });
    this.catalog = options.wrapCatalog?.(catalog) ?? catalog;
  }

  static async open(options: BenchOptions = {}): Promise<Bench> {
    const metadata = options.metadata ?? openSqliteMetadata(':memory:');
    return new Bench(options, await TopicDirectory.load(metadata), metadata);
  }

  /** Ids that no other call gave. */
  seeded() {
    this.#seed += 1;
    return seededIds(seededPrng(this.#seed));
  }

  /** Starts the service; again after `stop`, as a restarted process would. */
  start(over: Partial<TableTopicsDeps> = {}): TableTopics {
    this.#seed += 1;
    this.tables = startTableTopics({
      log: this.log,
      directory: this.directory,
      metadata: this.metadata,
      catalog: this.catalog,
      schemas: this.schemas,
      warehouse: this.warehouse,
      settings: resolveSettings(tableSettings, {
        'table.retry.first.ms': '5',
        'table.retry.max.ms': '50',
        ...this.#options.settings,
      }),
      clock: this.clock,
      prng: seededPrng(this.#seed),
      ids: this.seeded(),
      logger: this.#options.logger ?? silentLogger,
      metrics: noMetrics,
      ...(this.#options.threads === undefined ? {} : { threads: this.#options.threads }),
      ...over,
    });
    return this.tables;
  }

  /** A table topic with a short commit interval. */
  topic(name: string, config: Readonly<Record<string, string>> = {}, partitionCount = 1) {
    return this.directory.create({
      topicId: this.seeded().uuid(),
      name,
      partitionCount,
      config: {
        'table.topic.enable': 'true',
        'table.topic.commit.interval.ms': '100',
        ...config,
      },
      nowMs: this.clock.now(),
    });
  }

  /** Appends one batch of records to a partition of the topic. */
  produce(topic: Topic, records: readonly RecordInput[], partition = 0): void {
    this.log.add(topic.partitions[partition]!, buildBatch(records));
  }

  async load(name: string, namespace = 'kafka') {
    return (await this.catalog.loadTable({ namespace: [namespace], name })).metadata;
  }

  async stop(): Promise<void> {
    await this.tables?.stop();
    this.metadata.close();
  }
}

/** Wire format of registered schemas: 0, id, bytes. */
export function framed(schemaId: number, payload: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(5 + payload.length);
  bytes.writeInt32BE(schemaId, 1);
  bytes.set(payload, 5);
  return bytes;
}

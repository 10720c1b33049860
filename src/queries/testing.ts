// A table in a temporary folder whose Parquet files DuckDB itself writes, for tests of this folder.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { type Clock, systemClock } from '../base/clock.ts';
import { noMetrics } from '../base/metrics.ts';
import { resolveSettings } from '../base/settings.ts';
import { type DataFile, dataFolder, type PartitionValue } from '../formats/iceberg/index.ts';
import type { NewTable } from '../formats/iceberg/metadata-builder.ts';
import { NO_METRICS, TestTable } from '../formats/iceberg/test-table.ts';
import { LocalFiles } from './file-access.ts';
import { QueryService } from './service.ts';
import { querySettings } from './settings.ts';
import { literal, pathLiteral } from './sql-text.ts';
import type { TailSource } from './tail.ts';
import { type JsonValue, toJson } from './values.ts';

export interface WrittenFile {
  /** DuckDB's `field_ids` argument, e.g. `{id: 1, name: 2}`; a file without ids when left out. */
  readonly fieldIds?: string;
  readonly changes?: Partial<DataFile>;
  readonly partition?: readonly PartitionValue[];
  /** One is made up when left out. */
  readonly name?: string;
}

export class SqlFixture {
  readonly folder = mkdtempSync(join(tmpdir(), 'floe-sql-'));
  readonly root = `file://${this.folder}`;
  readonly table: TestTable;
  readonly service: QueryService;
  #writer: DuckDBConnection | undefined;
  #files = 0;

  constructor(
    table: Partial<NewTable> = {},
    options: {
      readonly settings?: Readonly<Record<string, string>>;
      readonly clock?: Clock;
      readonly topics?: Readonly<Record<string, string>>;
      readonly tail?: TailSource;
    } = {},
  ) {
    this.table = new TestTable({ location: `${this.root}/kafka/people`, ...table });
    const tables = [{ namespace: ['kafka'], name: 'people' }];
    const known = (name: string) => tables.find((one) => one.name === name);
    this.service = new QueryService({
      tables: {
        ofTopic: (topic) => known(options.topics?.[topic] ?? ''),
        exists: async ({ namespace, name }) =>
          namespace.join('.') === 'kafka' && known(name) !== undefined,
        names: async () => tables,
      },
      loadTable: async (identifier) => ({
        identifier,
        metadata: this.table.metadata,
        metadataLocation: 'unused',
      }),
      io: this.table,
      ...(options.tail === undefined ? {} : { tail: options.tail }),
      files: new LocalFiles(this.root),
      tempFolder: join(this.folder, 'temp'),
      tailFolder: join(this.folder, 'tail'),
      settings: resolveSettings(querySettings, {
        'sql.max.concurrent': '2',
        ...options.settings,
      }),
      clock: options.clock ?? systemClock,
      metrics: noMetrics,
    });
  }

  /** Writes the rows of a SELECT as a Parquet file and describes it. */
  async write(
    select: string,
    { fieldIds, changes = {}, partition = [], name }: WrittenFile = {},
  ): Promise<DataFile> {
    this.#writer ??= await (await DuckDBInstance.create(':memory:')).connect();
    this.#files += 1;
    const uri = `${dataFolder(this.table.metadata)}/${name ?? `f${this.#files}.parquet`}`;
    const path = uri.slice('file://'.length);
    mkdirSync(dirname(path), { recursive: true });
    await this.#writer.run(
      `COPY (${select}) TO ${literal(path)} (FORMAT parquet${fieldIds === undefined ? '' : `, FIELD_IDS ${fieldIds}`})`,
    );
    const [[rows]] = (
      await this.#writer.runAndReadAll(
        `SELECT count(*) FROM read_parquet(${pathLiteral(path)}, hive_partitioning = false)`,
      )
    ).getRows() as [[bigint]];
    this.table.files.set(uri, readFileSync(path));
    return this.table.file({
      filePath: uri,
      fileSizeInBytes: statSync(path).size,
      recordCount: Number(rows),
      metrics: NO_METRICS,
      partition,
      ...changes,
    });
  }

  /** All rows of a query, values as JSON has them. */
  async rows(query: string, signal?: AbortSignal): Promise<JsonValue[][]> {
    const result = await this.service.query(query, signal === undefined ? {} : { signal });
    const rows: JsonValue[][] = [];
    for await (const chunk of result.chunks())
      rows.push(...chunk.getRows().map((row) => row.map(toJson)));
    return rows;
  }

  async stop(): Promise<void> {
    await this.service.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

// Tables written by Spark, pyiceberg and DuckDB, where the data sets are present beside the repository: every one that
// can be read has as many rows as the engines agree on; those with known reasons are refused, by name.
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { noMetrics } from '../base/metrics.ts';
import { resolveSettings } from '../base/settings.ts';
import { parseTableMetadata } from '../formats/iceberg/index.ts';
import { QueryService } from './service.ts';
import { querySettings } from './settings.ts';
import { toJson } from './values.ts';

const data = fileURLToPath(new URL('../../../shared/data/', import.meta.url));

interface Golden {
  readonly metadata: string;
  readonly rows: number | null;
}

/** Paths in these tables are relative to where they were made. */
function placed(root: string, uri: string): string {
  const golden = /^s3:\/\/golden\/g\/(.*)$/.exec(uri);
  const lineitem = /^lineitem_iceberg\//.test(uri) ? 'data/persistent/iceberg' : '';
  return golden === null
    ? resolve(root, lineitem, uri.replace(/^file:(\/\/)?/, ''))
    : join(root, golden[1]!);
}

const REFUSED: Readonly<Record<string, RegExp>> = {
  avro_data: /AVRO data files/,
  timestamptz_ns: /timestamptz_ns can't be queried/,
  legacy_bare_deletion_vector: /no Puffin file/,
};

function corpus(name: string) {
  const root = join(data, name);
  const manifest = JSON.parse(readFileSync(join(root, 'manifest.json'), 'utf8')) as Record<
    string,
    Golden
  >;
  const metadataOf = (table: string) => {
    const path = join(root, table, manifest[table]!.metadata);
    const bytes = readFileSync(path);
    const text = /\.gz/.test(path) ? gunzipSync(bytes) : bytes;
    return parseTableMetadata(text.toString('utf8'));
  };
  const service = new QueryService({
    tables: {
      ofTopic: () => undefined,
      exists: async ({ name: table }) => Object.hasOwn(manifest, table),
      names: async () => Object.keys(manifest).map((table) => ({ namespace: ['c'], name: table })),
    },
    loadTable: async (identifier) => ({
      identifier,
      metadata: metadataOf(identifier.name),
      metadataLocation: 'x',
    }),
    io: { read: async (uri) => readFileSync(placed(root, uri)) },
    files: {
      folders: [root],
      open: async () => ({ pathOf: (uri) => placed(root, uri), close() {} }),
    },
    tempFolder: mkdtempSync(join(tmpdir(), 'floe-sql-')),
    tailFolder: mkdtempSync(join(tmpdir(), 'floe-tail-')),
    settings: resolveSettings(querySettings, { 'sql.max.concurrent': '1' }),
    clock: systemClock,
    metrics: noMetrics,
  });
  return { service, manifest };
}

async function count(service: QueryService, table: string): Promise<unknown> {
  const result = await service.query(`SELECT count(*) FROM (SELECT * FROM c."${table}")`);
  for await (const chunk of result.chunks()) return toJson(chunk.getRows()[0]![0]!);
  return undefined;
}

for (const name of ['iceberg-spark', 'iceberg-duckdb']) {
  describe.skipIf(!existsSync(join(data, name)))(name, () => {
    const { service, manifest } = corpus(name);
    afterAll(() => service.stop());
    test.each(Object.keys(manifest))('%s', async (table) => {
      const short = table.slice(table.lastIndexOf('/') + 1);
      const reason = REFUSED[short];
      if (reason !== undefined) return expect(count(service, table)).rejects.toThrow(reason);
      const rows = await count(service, table);
      // Where the engines themselves disagree there is nothing to compare with.
      if (manifest[table]!.rows !== null) expect(rows).toBe(manifest[table]!.rows);
    });
  });
}

import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import type { Schema } from '../../formats/iceberg/index.ts';
import { MemoryObjectStore } from '../../storage/objects/memory.ts';
import { catalogContract } from '../contract.ts';
import { FakeGlue } from '../testing/fake-glue.ts';
import { Warehouse } from '../warehouse.ts';
import { GlueApi } from './glue-api.ts';
import { GlueCatalog } from './glue-catalog.ts';
import { hiveType } from './table-input.ts';

const running: { stop(): Promise<unknown> }[] = [];
afterAll(() => Promise.all(running.map((one) => one.stop())));

async function make() {
  const glue = new FakeGlue();
  const endpoint = await glue.listen();
  const access = {
    region: 'us-east-1',
    endpoint,
    credentials: { accessKeyId: 'a', secretAccessKey: 's' },
    timeoutMs: 5_000,
  };
  const api = new GlueApi(access, systemClock);
  const store = new MemoryObjectStore(systemClock);
  const warehouse = new Warehouse(store, 'w/');
  /** Another process on the same Glue and bucket. */
  const client = (seed: number) =>
    new GlueCatalog({
      api,
      warehouse,
      clock: systemClock,
      prng: seededPrng(seed),
      ids: seededIds(seededPrng(seed)),
      logger: silentLogger,
      catalogId: '',
      skipArchive: true,
      cacheBytes: 1024 * 1024,
      readAttempts: 3,
      commitAttempts: 8,
      staleMs: 60_000,
    });
  running.push({
    stop() {
      api.stop();
      return glue.app.close();
    },
  });
  return { glue, store, warehouse, catalog: client(6), other: client(7) };
}

const named = (name: string, namespace = ['kafka'], partitionSources: readonly string[] = []) => ({
  identifier: { namespace, name },
  partitionSources,
});

describe('contract', () =>
  catalogContract('glue', async () => {
    const { glue, warehouse, catalog } = await make();
    return {
      catalog,
      files: warehouse,
      badTables: [
        named('Upper'),
        named('with-dash'),
        named('x'.repeat(252)),
        named('t', ['a', 'b']),
        named('t', ['Kafka']),
        named('t', ['kafka'], ['address.city']),
      ],
      loseReply: () => glue.fail('UpdateTable', 'lost'),
      staleReply: () => glue.fail('GetTable', 'stale'),
    };
  }));

/** Waits, turn by turn, for what a request under way brings about. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [{ id: 1, name: 'id', required: true, type: 'long', doc: 'the id' }],
};
const t = { namespace: ['n'], name: 't' };
const set = (value: string) => ({
  requirements: [],
  updates: [{ action: 'set-properties', updates: { a: value } }],
});

describe('pointers', () => {
  let made: Awaited<ReturnType<typeof make>>;

  beforeEach(async () => {
    made = await make();
    await made.catalog.ensureNamespace(['n']);
    await made.catalog.createTable(['n'], { name: 't', schema });
  });

  async function metadataFiles(): Promise<number> {
    let count = 0;
    for await (const _ of made.store.list('w/')) count += 1;
    return count;
  }

  /** Runs a commit whose first look at the table after its update is held up. */
  function beforeItLooks<T>(commit: () => Promise<T>): Promise<T> {
    made.glue.onUpdate = () => {
      made.glue.onUpdate = undefined;
      made.glue.hold('GetTable');
    };
    return commit();
  }

  test('are what Athena looks for, with the one before, and no archive', async () => {
    const { glue, catalog } = made;
    const before = await catalog.loadTable(t);
    glue.tableOf('n', 't')!.table['Description'] = 'by hand';
    const after = await catalog.commitTable(t, {
      requirements: [],
      updates: [
        {
          action: 'add-schema',
          schema: { ...schema, fields: [{ ...schema.fields[0]!, name: 'key' }] },
        },
        { action: 'set-current-schema', 'schema-id': -1 },
      ],
    });
    const { table, archived } = glue.tableOf('n', 't')!;
    expect(archived).toBe(0);
    expect(table).toMatchObject({
      VersionId: '1',
      TableType: 'EXTERNAL_TABLE',
      Description: 'by hand',
      Parameters: {
        table_type: 'ICEBERG',
        metadata_location: after.metadataLocation,
        previous_metadata_location: before.metadataLocation,
      },
      StorageDescriptor: {
        Location: after.metadata.location,
        Columns: [
          { Name: 'key', Type: 'bigint', Parameters: { 'iceberg.field.current': 'true' } },
          { Name: 'id', Comment: 'the id', Parameters: { 'iceberg.field.current': 'false' } },
        ],
      },
    });
  });

  test('move only from the version that was read; who still may goes again', async () => {
    const { glue, catalog } = made;
    let others = 0;
    const other = { ...glue.tableOf('n', 't')!.table };
    glue.onUpdate = () => {
      if (others++ > 0) return;
      const { tables } = glue.databases.get('n')!;
      tables.set('t', { table: { ...other, VersionId: '7' }, archived: 0 });
    };
    await catalog.commitTable(t, set('b'));
    expect(glue.tableOf('n', 't')!.table.VersionId).toBe('8');
    expect(glue.calls.filter((one) => one === 'UpdateTable')).toHaveLength(2);
    expect(await metadataFiles()).toBe(2);
  });

  test.each([
    ['throttled', 'unavailable', 1],
    ['error-before', 'timeout', 2],
  ] as const)('%s: nothing was changed, and that is %s', async (fault, code, files) => {
    made.glue.fail('UpdateTable', fault);
    await expect(made.catalog.commitTable(t, set('b'))).rejects.toMatchObject({ code });
    expect((await made.catalog.loadTable(t)).metadata.properties).toEqual({});
    // What may yet arrive keeps its file.
    expect(await metadataFiles()).toBe(files);
  });

  test.each(['error-after', 'lost'] as const)(
    '%s: the pointer tells that it moved',
    async (fault) => {
      made.glue.fail('UpdateTable', fault);
      const { metadata } = await made.catalog.commitTable(t, set('b'));
      expect(metadata.properties).toEqual({ a: 'b' });
      expect((await made.catalog.loadTable(t)).metadata).toEqual(metadata);
    },
  );

  test('an update that was made and built upon is found in the metadata log', async () => {
    const { glue, catalog, other } = made;
    glue.fail('UpdateTable', 'error-after');
    const committing = beforeItLooks(() => catalog.commitTable(t, set('b')));
    await until(() => glue.holding);
    await other.commitTable(t, set('c'));
    glue.release();
    expect((await committing).metadata.properties).toEqual({ a: 'b' });
    expect((await catalog.loadTable(t)).metadata.properties).toEqual({ a: 'c' });
    expect(await metadataFiles()).toBe(3);
  });

  test('an update that others passed by is proved lost, and its file goes', async () => {
    const { glue, catalog, other } = made;
    glue.fail('UpdateTable', 'error-before');
    const uuid = (await other.loadTable(t)).metadata['table-uuid'];
    const lost = {
      requirements: [
        { type: 'assert-table-uuid', uuid },
        { type: 'assert-current-schema-id', 'current-schema-id': 0 },
      ],
      updates: set('b').updates,
    };
    const committing = beforeItLooks(() => catalog.commitTable(t, lost));
    await until(() => glue.holding);
    const wider = {
      ...schema,
      fields: [...schema.fields, { id: 2, name: 'n', required: false, type: 'int' }],
    };
    await other.commitTable(t, {
      requirements: [],
      updates: [
        { action: 'add-schema', schema: wider },
        { action: 'set-current-schema', 'schema-id': -1 },
      ],
    });
    glue.release();
    await expect(committing).rejects.toMatchObject({ code: 'conflict' });
    expect(await metadataFiles()).toBe(2);
  });

  test('concurrent writers both land, each file in one line', async () => {
    const { catalog, other } = made;
    await Promise.all(
      [catalog, other, catalog, other].map((one, n) => one.commitTable(t, set(`${n}`))),
    );
    const { metadata } = await made.catalog.loadTable(t);
    expect(metadata['metadata-log']).toHaveLength(4);
    expect(await metadataFiles()).toBe(5);
  });

  test('a read is repeated while Glue throttles or fails', async () => {
    made.glue.fail('GetTable', 'throttled');
    made.glue.fail('GetTable', 'error-before');
    expect((await made.catalog.loadTable(t)).metadata.properties).toEqual({});
    for (let n = 0; n < 3; n += 1) made.glue.fail('GetTable', 'throttled');
    await expect(made.catalog.loadTable(t)).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('a create of unknown outcome is looked up', async () => {
    made.glue.fail('CreateTable', 'error-after');
    const created = await made.catalog.createTable(['n'], { name: 'u', schema });
    expect((await made.catalog.loadTable({ ...t, name: 'u' })).metadata).toEqual(created.metadata);
    made.glue.fail('CreateTable', 'error-before');
    await expect(made.catalog.createTable(['n'], { name: 'v', schema })).rejects.toMatchObject({
      code: 'timeout',
    });
  });

  test('a Hive table of that name is left alone', async () => {
    const hive = { Name: 'h', VersionId: '0', Parameters: { classification: 'parquet' } };
    made.glue.databases.get('n')!.tables.set('h', { table: hive, archived: 0 });
    await expect(made.catalog.loadTable({ ...t, name: 'h' })).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('no Iceberg table'),
    });
    expect(await made.catalog.listTables(['n'])).toEqual([t]);
    await expect(made.catalog.createTable(['n'], { name: 'h', schema })).rejects.toMatchObject({
      code: 'conflict',
    });
  });
});

test('a Glue that can’t be reached is unavailable', async () => {
  const api = new GlueApi(
    {
      region: 'us-east-1',
      endpoint: 'http://127.0.0.1:1',
      credentials: { accessKeyId: 'a', secretAccessKey: 's' },
      timeoutMs: 5_000,
    },
    systemClock,
  );
  await expect(
    api.ask({ name: 'x', changes: true }, async (client, signal) => {
      const { GetDatabasesCommand } = await import('@aws-sdk/client-glue');
      return client.send(new GetDatabasesCommand({}), { abortSignal: signal });
    }),
  ).rejects.toMatchObject({ code: 'unavailable', details: { refused: true } });
  api.stop();
});

test.each([
  ['long', 'bigint'],
  ['decimal(10, 2)', 'decimal(10,2)'],
  ['fixed[12]', 'binary'],
  ['timestamptz', 'timestamp'],
  ['uuid', 'string'],
] as const)('%s is shown as %s', (type, shown) => {
  expect(hiveType(type)).toBe(shown);
});

test('nested types are shown in Hive’s words', () => {
  expect(
    hiveType({
      type: 'map',
      'key-id': 2,
      key: 'string',
      'value-id': 3,
      'value-required': false,
      value: {
        type: 'list',
        'element-id': 4,
        'element-required': false,
        element: {
          type: 'struct',
          fields: [{ id: 5, name: 'a', required: false, type: 'long' }],
        },
      },
    }),
  ).toBe('map<string,array<struct<a:bigint>>>');
});

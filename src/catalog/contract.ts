// What every Catalog implementation must do; each runs this suite in its own test file.
import { beforeEach, expect, test } from 'vitest';
import { seededIds, seededPrng } from '../base/prng.ts';
import type { FileReader } from '../formats/iceberg/index.ts';
import { newSnapshotId, prepareAppend, type Schema } from '../formats/iceberg/index.ts';
import type { Catalog, LoadedTable, ProposedTable } from './catalog.ts';

export interface CatalogUnderTest {
  readonly catalog: Catalog;
  /** Reads and writes files of the catalog's warehouse. */
  readonly files: FileReader & { write(uri: string, bytes: Uint8Array): Promise<void> };
  /** The next change is made and its answer is lost; missing where no answer can get lost. */
  readonly loseReply?: () => void;
  /** The next answer to a load is the first that was ever given; missing where that can't be. */
  readonly staleReply?: () => void;
  /** Names that this kind of catalog can't take. */
  readonly badTables: readonly ProposedTable[];
}

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: 1, name: 'id', required: true, type: 'long' },
    { id: 2, name: 'at', required: false, type: 'timestamptz' },
  ],
};
const orders = { namespace: ['kafka'], name: 'orders' };
const ids = seededIds(seededPrng(3));

/** A commit that appends nothing: a snapshot of its own all the same. */
async function append(files: CatalogUnderTest['files'], { metadata }: LoadedTable) {
  const prepared = await prepareAppend({
    metadata,
    io: files,
    snapshotId: newSnapshotId(ids, metadata),
    commitUuid: ids.uuid(),
    nowMs: metadata['last-updated-ms'],
    added: [],
  });
  for (const { path, bytes } of prepared.objects) await files.write(path, bytes);
  return prepared;
}

export function catalogContract(name: string, make: () => Promise<CatalogUnderTest>): void {
  let made: CatalogUnderTest;
  let catalog: Catalog;
  let files: CatalogUnderTest['files'];

  beforeEach(async () => {
    made = await make();
    ({ catalog, files } = made);
    await catalog.ensureNamespace(['kafka']);
  });

  test(`${name}: namespaces are made once, tables need one`, async () => {
    await catalog.ensureNamespace(['kafka'], { owner: 'me' });
    await catalog.ensureNamespace(['other']);
    expect(await catalog.listTables(['other'])).toEqual([]);
    expect(await catalog.listNamespaces([])).toEqual([['kafka'], ['other']]);
    await expect(catalog.createTable(['missing'], { name: 't', schema })).rejects.toMatchObject({
      code: 'not-found',
    });
  });

  test(`${name}: a created table loads as it was returned, and its name is taken`, async () => {
    const created = await catalog.createTable(['kafka'], {
      name: 'orders',
      schema,
      partitionSpec: {
        'spec-id': 0,
        fields: [{ 'source-id': 2, 'field-id': 1000, name: 'at_day', transform: 'day' }],
      },
      properties: { owner: 'floe' },
    });
    expect(created.metadata.properties).toMatchObject({ owner: 'floe' });
    expect(created.metadata['partition-specs'][0]!.fields[0]!.name).toBe('at_day');
    const loaded = await catalog.loadTable(orders);
    expect(loaded.metadata).toEqual(created.metadata);
    expect(loaded.metadataLocation).toBe(created.metadataLocation);
    expect(await catalog.listTables(['kafka'])).toEqual([orders]);
    expect(await catalog.tableExists(orders)).toBe(true);
    expect(await catalog.tableExists({ ...orders, name: 'other' })).toBe(false);
    await expect(catalog.createTable(['kafka'], { name: 'orders', schema })).rejects.toMatchObject({
      code: 'conflict',
    });
    await expect(catalog.loadTable({ ...orders, name: 'other' })).rejects.toMatchObject({
      code: 'not-found',
    });
  });

  test(`${name}: of two commits from one parent one wins, the other provably changed nothing`, async () => {
    const table = await catalog.createTable(['kafka'], { name: 'orders', schema });
    const [first, second] = [await append(files, table), await append(files, table)];
    const committed = await catalog.commitTable(orders, first);
    expect(committed.metadata['current-snapshot-id']).toBe(first.snapshot['snapshot-id']);
    for (const again of [second, first])
      await expect(catalog.commitTable(orders, again)).rejects.toMatchObject({ code: 'conflict' });
    const { metadata } = await catalog.loadTable(orders);
    expect(metadata.snapshots).toHaveLength(1);
    expect(metadata.snapshots![0]!.summary).toEqual(first.snapshot.summary);
  });

  test(`${name}: many commits at once, each derived afresh after a conflict, all land in one line`, async () => {
    await catalog.createTable(['kafka'], { name: 'orders', schema });
    const writer = async () => {
      for (;;) {
        const prepared = await append(files, await catalog.loadTable(orders));
        try {
          await catalog.commitTable(orders, prepared);
          return;
        } catch (caught) {
          expect(caught).toMatchObject({ code: 'conflict' });
        }
      }
    };
    await Promise.all([writer(), writer(), writer(), writer()]);
    const { metadata } = await catalog.loadTable(orders);
    expect(metadata.snapshots!.map((one) => one['sequence-number'])).toEqual([1, 2, 3, 4]);
    const parents = metadata.snapshots!.map((one) => one['parent-snapshot-id']);
    expect(parents.slice(1)).toEqual(
      metadata.snapshots!.slice(0, -1).map((one) => one['snapshot-id']),
    );
  });

  test(`${name}: a failed requirement or unknown update leaves the table alone`, async () => {
    const table = await catalog.createTable(['kafka'], { name: 'orders', schema });
    const updates = [{ action: 'set-properties', updates: { a: 'b' } }];
    const uuid = { type: 'assert-table-uuid', uuid: table.metadata['table-uuid'] };
    await expect(
      catalog.commitTable(orders, {
        requirements: [uuid, { type: 'assert-current-schema-id', 'current-schema-id': 7 }],
        updates,
      }),
    ).rejects.toMatchObject({ code: 'conflict' });
    await expect(
      catalog.commitTable(orders, {
        requirements: [uuid],
        updates: [...updates, { action: 'no-such-action' }],
      }),
    ).rejects.toMatchObject({ code: 'invalid' });
    expect((await catalog.loadTable(orders)).metadata.properties).toEqual({});
    await catalog.commitTable(orders, { requirements: [uuid], updates });
    expect((await catalog.loadTable(orders)).metadata.properties).toEqual({ a: 'b' });
  });

  test(`${name}: a dropped and recreated table is another one (T3)`, async () => {
    const before = await catalog.createTable(['kafka'], { name: 'orders', schema });
    const prepared = await append(files, before);
    await catalog.dropTable(orders, { purge: true });
    await expect(catalog.dropTable(orders, { purge: true })).rejects.toMatchObject({
      code: 'not-found',
    });
    const after = await catalog.createTable(['kafka'], { name: 'orders', schema });
    expect(after.metadata['table-uuid']).not.toBe(before.metadata['table-uuid']);
    expect(after.metadata.location).not.toBe(before.metadata.location);
    await expect(catalog.commitTable(orders, prepared)).rejects.toMatchObject({ code: 'conflict' });
  });

  test(`${name}: a listing is whole, however many tables there are`, async () => {
    const names = Array.from({ length: 120 }, (_, n) => `t${String(n).padStart(3, '0')}`);
    for (const each of names) await catalog.createTable(['kafka'], { name: each, schema });
    const listed = await catalog.listTables(['kafka']);
    expect(listed.map((one) => one.name)).toEqual(names);
  });

  test(`${name}: columns, specs, tags and properties change as one commit, with the ids asked for`, async () => {
    const { metadata } = await catalog.createTable(['kafka'], { name: 'orders', schema });
    const wider = { ...schema, 'schema-id': 1, fields: [...schema.fields, added(3)] };
    const prepared = await append(files, await catalog.loadTable(orders));
    const after = await catalog.commitTable(orders, {
      requirements: [
        { type: 'assert-table-uuid', uuid: metadata['table-uuid'] },
        { type: 'assert-current-schema-id', 'current-schema-id': 0 },
        { type: 'assert-last-assigned-field-id', 'last-assigned-field-id': 2 },
        ...prepared.requirements.filter((one) => one.type === 'assert-ref-snapshot-id'),
      ],
      updates: [
        { action: 'add-schema', schema: wider, 'last-column-id': 3 },
        { action: 'set-current-schema', 'schema-id': -1 },
        { action: 'add-spec', spec: { 'spec-id': 1, fields: [bucketed] } },
        { action: 'set-default-spec', 'spec-id': -1 },
        ...prepared.updates,
        {
          action: 'set-snapshot-ref',
          'ref-name': 'floe-watermark',
          type: 'tag',
          'snapshot-id': prepared.snapshot['snapshot-id'],
        },
        { action: 'set-properties', updates: { 'floe.fields': '{"a":1}' } },
      ],
    });
    const loaded = (await catalog.loadTable(orders)).metadata;
    expect(loaded).toEqual(after.metadata);
    expect(loaded['last-column-id']).toBe(3);
    expect(loaded['default-spec-id']).toBe(1);
    expect(loaded.refs?.['floe-watermark']).toMatchObject({
      type: 'tag',
      'snapshot-id': prepared.snapshot['snapshot-id'],
    });
    expect(loaded.properties).toMatchObject({ 'floe.fields': '{"a":1}' });
  });

  test(`${name}: a commit whose answer is lost is no rejection, and is found again (T5)`, async (context) => {
    if (made.loseReply === undefined) return context.skip();
    const table = await catalog.createTable(['kafka'], { name: 'orders', schema });
    const prepared = await append(files, table);
    made.loseReply();
    const outcome = await catalog.commitTable(orders, prepared).then(
      () => 'applied',
      (caught: unknown) => (caught as { code: string }).code,
    );
    // Some find out by themselves; none may call it a refusal.
    expect(['applied', 'timeout']).toContain(outcome);
    const { metadata } = await catalog.loadTable(orders);
    expect(metadata['current-snapshot-id']).toBe(prepared.snapshot['snapshot-id']);
    await expect(catalog.commitTable(orders, prepared)).rejects.toMatchObject({ code: 'conflict' });
    expect((await catalog.loadTable(orders)).metadata.snapshots).toHaveLength(1);
  });

  test(`${name}: an answer older than the last one is not believed`, async (context) => {
    if (made.staleReply === undefined) return context.skip();
    const table = await catalog.createTable(['kafka'], { name: 'orders', schema });
    await catalog.loadTable(orders);
    await catalog.commitTable(orders, await append(files, table));
    made.staleReply();
    const { metadata } = await catalog.loadTable(orders).catch((caught: unknown) => {
      expect(caught).toMatchObject({ code: 'unavailable' });
      return catalog.loadTable(orders);
    });
    expect(metadata.snapshots).toHaveLength(1);
  });

  test(`${name}: a renamed table is the same one, and never takes another's name`, async (context) => {
    if (catalog.renameTable === undefined) return context.skip();
    const table = await catalog.createTable(['kafka'], { name: 'orders', schema });
    await catalog.createTable(['kafka'], { name: 'taken', schema });
    const to = (to: string) => catalog.renameTable!(orders, { ...orders, name: to });
    await expect(to('taken')).rejects.toMatchObject({ code: 'conflict' });
    await to('invoices');
    expect((await catalog.loadTable({ ...orders, name: 'invoices' })).metadata).toEqual(
      table.metadata,
    );
    await expect(catalog.loadTable(orders)).rejects.toMatchObject({ code: 'not-found' });
    await expect(to('again')).rejects.toMatchObject({ code: 'not-found' });
  });

  test(`${name}: what it can't take is said before it is asked to`, () => {
    catalog.checkTable({ identifier: orders, partitionSources: ['at'] });
    for (const bad of made.badTables) {
      expect(() => catalog.checkTable(bad)).toThrow(expect.objectContaining({ code: 'invalid' }));
    }
  });
}

const added = (id: number) => ({ id, name: `c${id}`, required: false, type: 'string' as const });
const bucketed = { 'source-id': 1, 'field-id': 1000, name: 'id_bucket', transform: 'bucket[4]' };

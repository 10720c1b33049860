// Events that Debezium made from PostgreSQL, in Avro, in JSON with schemas and in JSON without: the same rows. Skipped
// where the recorded events are not at hand.
import { existsSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RecordInput } from '../../protocol/record-builder.ts';
import { Bench, framed } from '../testing/bench.ts';
import { readRows } from '../testing/parquet-rows.ts';
import { liveRows } from '../upsert/testing/live-rows.ts';

const folder = new URL('../../../../shared/data/debezium/', import.meta.url);
const here = existsSync(folder);

type Row = Record<string, unknown>;

interface Event {
  readonly topic: string;
  readonly key: { readonly schema: unknown; readonly payload: Row } | null;
  readonly value: { readonly schema: unknown; readonly payload: Row } | null;
}

interface AvroEvent {
  readonly topic: string;
  readonly value: { readonly schema: number; readonly base64: string } | null;
}

const lines = <T>(name: string): T[] =>
  readFileSync(new URL(name, folder), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as T);

/** The text of one member of a line's value, as Debezium wrote it: JSON.parse would round longs. */
function rawValues(name: string): (string | null)[] {
  const text = readFileSync(new URL(name, folder), 'utf8').trim().split('\n');
  return text.map((line) => {
    const at = line.indexOf(',"value":') + 9;
    const value = line.slice(at, -1);
    return value === 'null' ? null : value;
  });
}

const payloadOf = (value: string) => value.slice(value.lastIndexOf(',"payload":') + 11, -1);

describe.skipIf(!here)('events from PostgreSQL', () => {
  let bench: Bench;

  beforeEach(async () => {
    bench = await Bench.open();
    bench.start();
  });

  afterEach(() => bench.stop());

  async function load(table: string, records: RecordInput[], config: Record<string, string>) {
    const name = table.replaceAll('.', '_');
    const topic = await bench.topic(table, {
      'table.topic.transform.value.type': 'flatten_debezium',
      'table.topic.commit.interval.ms': '900000',
      ...config,
    });
    bench.produce(topic, records);
    await bench.tables.commit(table);
    const rows = await readRows(bench.warehouse, await bench.load(name));
    return rows.toSorted((a, b) => Number(a['_kafka_offset']) - Number(b['_kafka_offset']));
  }

  async function avroRecords(table: string): Promise<RecordInput[]> {
    const schemas = JSON.parse(
      readFileSync(new URL('postgres-avro-schemas.json', folder), 'utf8'),
    ) as Record<string, unknown>;
    const ids = new Map<number, number>();
    const records: RecordInput[] = [];
    for (const { topic, value } of lines<AvroEvent>('postgres-avro.ndjson')) {
      if (topic !== table) continue;
      if (value === null) {
        records.push({ value: null });
        continue;
      }
      let id = ids.get(value.schema);
      if (id === undefined) {
        id = await bench.schemas.register(`${table}-value`, JSON.stringify(schemas[value.schema]));
        ids.set(value.schema, id);
      }
      records.push({ value: framed(id, Buffer.from(value.base64, 'base64')) });
    }
    return records;
  }

  function jsonRecords(table: string, withSchema: boolean): RecordInput[] {
    const raw = rawValues('postgres.ndjson');
    return lines<Event>('postgres.ndjson').flatMap(({ topic }, i) => {
      if (topic !== table) return [];
      const value = raw[i]!;
      return [{ value: value === null || withSchema ? value : payloadOf(value) }];
    });
  }

  for (const table of ['all_types', 'customers', 'no_key', 'orders', 'toasted']) {
    test(`Avro and JSON with schemas make the same rows: ${table}`, async () => {
      const topic = `pg.inventory.${table}`;
      const avro = await load(topic, await avroRecords(topic), {});
      const json = await load(`json.${table}`, jsonRecords(topic, true), {
        'table.topic.convert.value.type': 'json',
      });
      expect(json).toEqual(avro);
      const [a, b] = [await bench.load(`pg_inventory_${table}`), await bench.load(`json_${table}`)];
      const types = (metadata: typeof a) =>
        metadata.schemas
          .at(-1)!
          .fields.map(({ name, type }) => [name, typeof type === 'string' ? type : type.type]);
      expect(types(b).toSorted()).toEqual(types(a).toSorted());
    });
  }

  test('all types as PostgreSQL has them', async () => {
    const topic = 'pg.inventory.all_types';
    const [first, , infinite] = await load(topic, await avroRecords(topic), {});
    expect(first).toMatchObject({
      bi: 9_223_372_036_854_775_807n,
      n: '12345678901234567890.123456789',
      n2: -0.00001,
      m: 12.34,
      tm: '23:59:59.999999',
      tmtz: '10:00:00Z',
      iv: 37_091_106_000_000n,
      u: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
      ia: [1, null, 3],
      p: { x: 1.5, y: -2, srid: null },
      _cdc_op: 'r',
      _cdc_source: { db: 'shop', table: 'all_types', lsn: 26_487_904n },
    });
    expect(Number(first!['dt'] as Date)).toBe(-703_383 * 86_400_000);
    expect(Number(first!['ts3'] as Date)).toBe(-1);
    expect(infinite).toMatchObject({ r: Number.NaN, d: Number.NEGATIVE_INFINITY });
  });

  test('JSON without schemas: longs exact, NaN beside numbers in a column of its own', async () => {
    const records = jsonRecords('pg.inventory.all_types', false);
    const rows = await load('plain', records, { 'table.topic.convert.value.type': 'json' });
    expect(
      rows.map((row) => [row['_cdc_op'], row['id'], row['bi'], row['r'], row['r__string']]),
    ).toEqual([
      ['r', 1n, 9_223_372_036_854_775_807n, 1.5, null],
      ['r', 2n, null, null, null],
      ['r', 3n, null, null, 'NaN'],
      ['u', 1n, 9_223_372_036_854_775_807n, 1.5, null],
      ['d', 2n, null, null, null],
    ]);
    expect(rows[0]!['_cdc_source']).toMatchObject({ table: 'all_types', txId: 744n });
  });

  describe('upserted, the tables hold what the database held in the end', () => {
    const ids: Record<string, string> = {
      all_types: '[id]',
      customers: '[id]',
      orders: '[order_id, line_no]',
      toasted: '[id]',
    };
    const final = here
      ? (JSON.parse(readFileSync(new URL('postgres-final.json', folder), 'utf8')) as Record<
          string,
          { readonly rows: number; readonly keys: readonly Record<string, number>[] }
        >)
      : {};

    for (const [table, columns] of Object.entries(ids)) {
      test.each(['avro', 'json'])(`${table}, from %s`, async (format) => {
        const topic = `pg.inventory.${table}`;
        const records = format === 'avro' ? await avroRecords(topic) : jsonRecords(topic, true);
        const half = Math.ceil(records.length / 2);
        await load(topic, records.slice(0, half), {
          'table.topic.convert.value.type': format === 'avro' ? 'by_schema_id' : 'json',
          'table.topic.upsert.enable': 'true',
          'table.topic.id.columns': columns,
        });
        bench.produce(bench.directory.byName(topic)!, records.slice(half));
        await bench.tables.commit(topic);
        const found = await liveRows(bench.warehouse, await bench.load(topic.replaceAll('.', '_')));
        const keys = found.map((row) =>
          Object.fromEntries(
            Object.keys(final[table]!.keys[0]!).map((name) => [name, Number(row[name])]),
          ),
        );
        expect(keys).toHaveLength(final[table]!.rows);
        expect(keys).toEqual(expect.arrayContaining([...final[table]!.keys]));
      });
    }
  });
});

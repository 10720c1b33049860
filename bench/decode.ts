// Records to rows to Parquet, in CPU time of this process (collector and compressor threads included): the hot path
// of table topics without broker, fetch and commit. System columns are appended as a worker does.
//   node bench/decode.ts [NAME…]     rows per CPU second as min / median / max of several rounds
// A round repeats a case for a quarter of a second, after one second that warms up: workers run for days, and what the
// compiler does meanwhile is no property of the code.
// `+ Parquet` is decoding and writing together. `parquet-wasm` writes the same flights through Arrow IPC and
// WebAssembly, which is what the encoder of src/formats/parquet replaced.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import * as arrow from 'apache-arrow';
import avsc from 'avsc';
import * as wasm from 'parquet-wasm/node';
import protobuf from 'protobufjs';
import { FLIGHT_SCHEMA } from '../src/cli/flights.ts';
import type { ListColumn } from '../src/formats/arrow/nested-columns.ts';
import type { ProposedField } from '../src/formats/arrow/proposed-schema.ts';
import type { Int32Column, Int64Column } from '../src/formats/arrow/scalar-columns.ts';
import { TableColumns } from '../src/formats/arrow/table-columns.ts';
import { type CommittedForTest, commitForTest } from '../src/formats/arrow/testing.ts';
import { compileAvroDecoder } from '../src/formats/avro/decoder.ts';
import { parseAvroSchema } from '../src/formats/avro/schema.ts';
import { avroToProposed } from '../src/formats/avro/to-iceberg.ts';
import { compileJsonDecoder } from '../src/formats/json/decoder.ts';
import { JsonInference } from '../src/formats/json/infer.ts';
import { compileJsonSchemaDecoder } from '../src/formats/json-schema/decoder.ts';
import { jsonSchemaShape } from '../src/formats/json-schema/shape.ts';
import { shapeToProposed } from '../src/formats/json-schema/to-iceberg.ts';
import { createChunkEncoder, ParquetWriter } from '../src/formats/parquet/writer.ts';
import { compileProtobufDecoder } from '../src/formats/protobuf/decoder.ts';
import { parseProtobuf } from '../src/formats/protobuf/schema.ts';
import { protobufToProposed } from '../src/formats/protobuf/to-iceberg.ts';

const ROUNDS = 7;
/** Seconds of CPU before and in each round. */
const WARM_UP = 1;
const ROUND = 0.25;
const ROWS = 300_000;
/** Rows of a row group, as a worker would close it. */
const GROUP_ROWS = 150_000;

const filters = process.argv.slice(2);

/** The median, rows per CPU second. */
function measure(name: string, rows: number, work: () => void): number {
  if (filters.length > 0 && !filters.some((filter) => name.includes(filter))) return 0;
  repeat(work, WARM_UP);
  const rates = Array.from({ length: ROUNDS }, () => rows * repeat(work, ROUND)).sort(
    (a, b) => a - b,
  );
  const text = [rates[0]!, rates[ROUNDS >> 1]!, rates[ROUNDS - 1]!]
    .map((rate) => `${Math.round(rate / 1000)}k`.padStart(7))
    .join(' / ');
  process.stdout.write(`${name.padEnd(44)} ${text}  rows per CPU second\n`);
  return rates[ROUNDS >> 1]!;
}

/** Repeats `work` for `seconds` of CPU or somewhat longer, and at least twice. How often a CPU second. */
function repeat(work: () => void, seconds: number): number {
  const start = process.cpuUsage();
  for (let times = 1; ; times++) {
    work();
    const { user, system } = process.cpuUsage(start);
    const used = (user + system) / 1e6;
    if (used >= seconds && times > 1) return times / used;
  }
}

/** Values of records, one after the other as in a batch. */
interface Records {
  readonly bytes: Uint8Array;
  readonly ends: Int32Array;
}

function records(values: Iterable<Uint8Array>): Records {
  const parts = [...values];
  const ends = new Int32Array(parts.length);
  let end = 0;
  parts.forEach((part, i) => {
    end += part.length;
    ends[i] = end;
  });
  return { bytes: new Uint8Array(Buffer.concat(parts)), ends };
}

const plain = (name: string, type: ProposedField['type'], path = `:${name}`): ProposedField => ({
  name,
  aliases: [],
  path,
  type,
});

/** The system columns of a table topic. */
const SYSTEM_FIELDS: readonly ProposedField[] = [
  plain('_kafka_partition', 'int'),
  plain('_kafka_offset', 'long'),
  plain('_kafka_timestamp', 'timestamptz'),
  plain('_kafka_key', 'binary'),
  plain('_kafka_headers', {
    type: 'list',
    elementPath: ':headers[]',
    element: {
      type: 'struct',
      fields: [
        plain('key', 'string', ':headers[].key'),
        plain('value', 'binary', ':headers[].value'),
      ],
    },
  }),
];

/** Appends position and time; no key, no headers. */
function systemAppender(columns: TableColumns, bindings: ReadonlyMap<string, number>) {
  const find = (name: string) => columns.byId(bindings.get(`:${name}`)!);
  const partition = find('_kafka_partition') as Int32Column;
  const offset = find('_kafka_offset') as Int64Column;
  const timestamp = find('_kafka_timestamp') as Int64Column;
  const headers = find('_kafka_headers') as ListColumn;
  return (row: number) => {
    partition.append(0);
    offset.append(row);
    timestamp.append((1_790_000_000_000 + Math.floor(row / 300)) * 1000);
    headers.end();
  };
}

interface Case {
  readonly committed: CommittedForTest;
  compile(columns: TableColumns): {
    decode(bytes: Uint8Array, start: number, end: number): string | undefined;
  };
  readonly input: Records;
}

function avroCase(schema: object, values: Iterable<unknown>): Case {
  const type = avsc.Type.forSchema(schema as avsc.Schema);
  const encoded: Uint8Array[] = [];
  for (const value of values) encoded.push(type.toBuffer(value));
  const parsed = parseAvroSchema(JSON.stringify(schema));
  const { fields } = avroToProposed(parsed);
  const committed = commitForTest({ type: 'struct', fields: [...fields, ...SYSTEM_FIELDS] });
  return {
    committed,
    compile: (columns) => compileAvroDecoder(parsed, columns, committed.bindings),
    input: records(encoded),
  };
}

function protobufCase(text: string, name: string, values: Iterable<object>): Case {
  const type = protobuf.parse(text, { keepCase: true }).root.lookupType(name);
  const encoded: Uint8Array[] = [];
  for (const value of values) encoded.push(Uint8Array.from(type.encode(value).finish()));
  const schema = parseProtobuf(text);
  const source = { message: schema.find(name)!, find: schema.find };
  const { fields } = protobufToProposed(source.message, { nanos: false });
  const committed = commitForTest({ type: 'struct', fields: [...fields, ...SYSTEM_FIELDS] });
  return {
    committed,
    compile: (columns) => compileProtobufDecoder(source, columns, committed.bindings),
    input: records(encoded),
  };
}

function jsonSchemaCase(schema: object, values: Iterable<Uint8Array>): Case {
  const shape = jsonSchemaShape(JSON.stringify(schema), [], { time: 'string' });
  if (shape.kind !== 'struct') throw new Error('an object is wanted');
  const { fields } = shapeToProposed(shape);
  const committed = commitForTest({ type: 'struct', fields: [...fields, ...SYSTEM_FIELDS] });
  return {
    committed,
    compile: (columns) => compileJsonSchemaDecoder({ shape }, columns, committed.bindings),
    input: records(values),
  };
}

function jsonCase(values: Iterable<Uint8Array>): Case {
  const input = records(values);
  const inference = new JsonInference();
  input.ends.forEach((end, i) => {
    if (i < 1000) inference.add(input.bytes, i === 0 ? 0 : input.ends[i - 1]!, end);
  });
  const { fields } = inference.proposed();
  const committed = commitForTest({ type: 'struct', fields: [...fields, ...SYSTEM_FIELDS] });
  return {
    committed,
    compile: (columns) => compileJsonDecoder(columns, committed.bindings),
    input,
  };
}

function run(name: string, make: () => Case): void {
  if (filters.length > 0 && !filters.some((filter) => `${name} + Parquet`.includes(filter))) return;
  const { committed, compile, input } = make();
  const columns = new TableColumns(committed.schema);
  const decoder = compile(columns);
  const appendSystem = systemAppender(columns, committed.bindings);
  const encoder = createChunkEncoder();
  const { bytes, ends } = input;
  let size = 0;
  const work = (parquet: boolean) => () => {
    const writer = new ParquetWriter({ schema: committed.schema }, encoder);
    columns.clear();
    for (let i = 0; i < ends.length; i++) {
      const reason = decoder.decode(bytes, i === 0 ? 0 : ends[i - 1]!, ends[i]!);
      if (reason !== undefined) throw new Error(`${name}: ${reason}`);
      appendSystem(i);
      columns.endRow();
      if (columns.rowCount === GROUP_ROWS) flush();
    }
    flush();
    if (parquet) size = writer.finish().byteLength;

    function flush() {
      if (parquet) writer.writeRowGroup(columns);
      columns.clear();
    }
  };
  measure(`${name}`, ends.length, work(false));
  const rate = measure(`${name} + Parquet`, ends.length, work(true));
  if (size > 0) {
    const ratio = (size / ends.length).toFixed(1);
    process.stdout.write(
      `  ${(bytes.length / ends.length).toFixed(0)} B a record, ${ratio} B a row, ${((rate * bytes.length) / ends.length / 1e6).toFixed(0)} MB of records per CPU second\n`,
    );
  }
}

/** Columns of the first `ROWS` flights: date (ms), delay, distance, origin, destination. */
async function flights(): Promise<unknown[][]> {
  const folder = join(import.meta.dirname, '..', 'node_modules', 'vega-datasets');
  const duckdb = await DuckDBInstance.create(':memory:');
  const connection = await duckdb.connect();
  const result = await connection.runAndReadAll(
    `SELECT epoch_ms(date)::DOUBLE, delay::INT, distance::INT, origin, destination
     FROM '${join(folder, 'data', 'flights-3m.parquet')}' LIMIT ${ROWS}`,
  );
  connection.closeSync();
  return result.getRows() as unknown[][];
}

const FLIGHT = JSON.parse(FLIGHT_SCHEMA) as {
  readonly fields: readonly { readonly name: string }[];
};

// Only where they are asked for: the collector would look at them again and again.
const flightCases = filters.length === 0 || filters.some((name) => !/^(100|GitHub)/.test(name));
const rows = flightCases ? await flights() : [];
const names = FLIGHT.fields.map((field) => field.name);
const flightOf = (row: unknown[]) => Object.fromEntries(names.map((name, i) => [name, row[i]]));
run('flights, Avro', () => avroCase(FLIGHT, rows.map(flightOf)));
const FLIGHT_PROTO = `syntax = "proto3"; import "google/protobuf/timestamp.proto";
  message Flight { int64 date = 1; sint32 delay = 2; int32 distance = 3; string origin = 4; string destination = 5; }`;
run('flights, Protobuf', () => protobufCase(FLIGHT_PROTO, 'Flight', rows.map(flightOf)));
const FLIGHT_JSON_SCHEMA = {
  type: 'object',
  properties: {
    date: { type: 'integer' },
    delay: { type: 'integer' },
    distance: { type: 'integer' },
    origin: { type: 'string' },
    destination: { type: 'string' },
  },
};
run('flights, JSON Schema', () =>
  jsonSchemaCase(
    FLIGHT_JSON_SCHEMA,
    rows.map((row) => Buffer.from(JSON.stringify(flightOf(row)))),
  ),
);
run('flights, JSON', () =>
  jsonCase(
    rows.map((row) => {
      const date = new Date(row[0] as number).toISOString().slice(0, 19);
      return Buffer.from(JSON.stringify({ ...flightOf(row), date }));
    }),
  ),
);

/** 100 columns: ints, longs, doubles, booleans, short and longer strings, a third of them optional. */
const WIDE = {
  type: 'record',
  name: 'Wide',
  fields: Array.from({ length: 100 }, (_, i) => {
    const type = ['int', 'long', 'double', 'string', 'boolean'][i % 5]!;
    return { name: `column_${i}`, type: i % 3 === 0 ? ['null', type] : type };
  }),
};

function wideRow(row: number): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  WIDE.fields.forEach(({ name, type }, i) => {
    if (Array.isArray(type) && (row + i) % 4 === 0) value[name] = null;
    else if (i % 5 === 0) value[name] = (row * (i + 1)) % 1000;
    else if (i % 5 === 1) value[name] = row * 1_000_003 + i;
    else if (i % 5 === 2) value[name] = ((row * 7919) % 100_000) / 100;
    else if (i % 5 === 3) value[name] = `value ${(row * (i + 7)) % (i * 40 + 10)}`;
    else value[name] = (row + i) % 3 === 0;
  });
  return value;
}

const wide = Array.from({ length: 20_000 }, (_, row) => wideRow(row));
run('100 columns, Avro', () => avroCase(WIDE, wide));
run('100 columns, JSON', () => jsonCase(wide.map((value) => Buffer.from(JSON.stringify(value)))));

const events = join(
  import.meta.dirname,
  '..',
  '..',
  'shared',
  'data',
  'gharchive',
  'events.ndjson',
);
if (existsSync(events)) {
  const lines = readFileSync(events, 'utf8').trim().split('\n');
  run('GitHub events, nested JSON', () => jsonCase(lines.map((line) => Buffer.from(line))));
}

/** The same ten columns of flights through Arrow IPC and parquet-wasm. */
function throughWasm(): void {
  const column = (i: number) => rows.map((row) => row[i]);
  const long = (values: number[]) => BigInt64Array.from(values, (value) => BigInt(value));
  const micros = new arrow.TimestampMicrosecond('UTC');
  const header = new arrow.Struct([
    new arrow.Field('key', new arrow.Utf8(), true),
    new arrow.Field('value', new arrow.Binary(), true),
  ]);
  const length = rows.length;
  const time = (values: number[]) =>
    arrow.makeVector({ type: micros, data: long(values), length, nullCount: 0 });
  const table = new arrow.Table({
    date: time(column(0).map((ms) => (ms as number) * 1000)),
    delay: arrow.makeVector(long(column(1) as number[])),
    distance: arrow.makeVector(long(column(2) as number[])),
    origin: arrow.vectorFromArray(column(3), new arrow.Utf8()),
    destination: arrow.vectorFromArray(column(4), new arrow.Utf8()),
    _kafka_partition: arrow.makeVector(new Int32Array(length)),
    _kafka_offset: arrow.makeVector(long(rows.map((_, i) => i))),
    _kafka_timestamp: time(rows.map((_, i) => (1_790_000_000_000 + Math.floor(i / 300)) * 1000)),
    _kafka_key: arrow.vectorFromArray(new Array(length).fill(null), new arrow.Binary()),
    _kafka_headers: arrow.vectorFromArray(
      rows.map(() => []),
      new arrow.List(new arrow.Field('element', header, true)),
    ),
  });
  measure('flights, parquet-wasm (from Arrow columns)', length, () => {
    const ipc = arrow.tableToIPC(table, 'stream');
    const properties = new wasm.WriterPropertiesBuilder()
      .setCompression(wasm.Compression.ZSTD)
      .build();
    wasm.writeParquet(wasm.Table.fromIPCStream(ipc), properties);
  });
}
if (filters.length === 0 || filters.includes('parquet-wasm')) throughWasm();

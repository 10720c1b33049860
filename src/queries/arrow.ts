// A result as an Arrow IPC stream. Values keep their types, lists, structs and maps too, however deep; intervals and others
// without a plain counterpart are JSON text in Utf8 columns, marked by the field metadata `floe.type`.
import {
  DuckDBArrayType,
  type DuckDBArrayValue,
  type DuckDBDataChunk,
  DuckDBDecimalType,
  DuckDBListType,
  type DuckDBListValue,
  DuckDBMapType,
  type DuckDBMapValue,
  DuckDBStructType,
  type DuckDBStructValue,
  type DuckDBType,
  DuckDBTypeId,
  type DuckDBValue,
} from '@duckdb/node-api';
import {
  Binary,
  Bool,
  type Data,
  type DataType,
  DateDay,
  Decimal,
  Field,
  Float32,
  Float64,
  Int32,
  Int64,
  List,
  Map_,
  makeData,
  RecordBatch,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  TimeMicrosecond,
  TimestampMicrosecond,
  TimestampNanosecond,
  Uint32,
  Uint64,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import type { QueryResult } from './service.ts';
import { toJson } from './values.ts';

/** How one column goes over: its Arrow type, and the data of some values. */
interface Conversion {
  readonly type: DataType;
  toData(values: readonly DuckDBValue[]): Data;
  /** The values are JSON text. */
  readonly isText?: boolean;
}

/** `convert` gives what the column's builder takes for a value that is not null. */
interface Scalar {
  readonly type: DataType;
  readonly convert: (value: DuckDBValue) => unknown;
  /** Words of a fixed-width column's buffer; undefined where Arrow's builder makes it. */
  readonly words?: (values: readonly unknown[]) => ArrayBufferView;
}

function scalar({ type, convert, words }: Scalar): Conversion {
  return {
    type,
    toData: (column) => {
      const values = column.map((value) => (value === null ? null : convert(value)));
      if (words === undefined) return vectorFromArray(values, type).data[0]!;
      return rawData(type, values, { data: words(values) });
    },
  };
}

/** The nulls of `values` and a column's buffers. */
function rawData(
  type: DataType,
  values: readonly unknown[],
  buffers: {
    readonly data?: ArrayBufferView;
    readonly valueOffsets?: Int32Array;
    readonly child?: Data;
    readonly children?: readonly Data[];
  },
): Data {
  const nullBitmap = new Uint8Array(Math.ceil(values.length / 8));
  let nullCount = 0;
  for (const [index, value] of values.entries()) {
    if (value === null) nullCount += 1;
    else nullBitmap[index >> 3]! |= 1 << (index & 7);
  }
  const options = { type, length: values.length, nullCount, nullBitmap, ...buffers };
  return makeData(options as never);
}

const jsonText: Conversion = {
  isText: true,
  ...scalar({
    type: new Utf8(),
    convert: (value) => {
      const json = toJson(value);
      return typeof json === 'string' ? json : JSON.stringify(json);
    },
  }),
};

function listOf(item: Conversion): Conversion {
  const type = new List(new Field('item', item.type, true, textMark(item)));
  return {
    type,
    toData: (values) => {
      const lists = values.map((value) =>
        value === null ? null : (value as DuckDBListValue | DuckDBArrayValue).items,
      );
      const child = item.toData(lists.flatMap((items) => items ?? []));
      return rawData(type, values, { valueOffsets: offsetsOf(lists), child });
    },
  };
}

function structOf(
  parts: readonly { readonly name: string; readonly part: Conversion }[],
): Conversion {
  const type = new Struct(
    parts.map(({ name, part }) => new Field(name, part.type, true, textMark(part))),
  );
  return {
    type,
    toData: (values) => {
      const children = parts.map(({ name, part }) =>
        part.toData(
          values.map((value) =>
            value === null ? null : ((value as DuckDBStructValue).entries[name] ?? null),
          ),
        ),
      );
      return rawData(type, values, { children });
    },
  };
}

function mapOf(key: Conversion, value: Conversion): Conversion {
  const entry = new Struct([
    new Field('key', key.type, false, textMark(key)),
    new Field('value', value.type, true, textMark(value)),
  ]);
  const type = new Map_(new Field('entries', entry, false));
  return {
    type,
    toData: (values) => {
      const maps = values.map((one) => (one === null ? null : (one as DuckDBMapValue).entries));
      const entries = maps.flatMap((some) => some ?? []);
      const children = [
        key.toData(entries.map((one) => one.key)),
        value.toData(entries.map((one) => one.value)),
      ];
      const child = makeData({ type: entry, length: entries.length, nullCount: 0, children });
      return rawData(type, values, { valueOffsets: offsetsOf(maps), child });
    },
  };
}

function offsetsOf(lists: readonly (readonly unknown[] | null)[]): Int32Array {
  const offsets = new Int32Array(lists.length + 1);
  for (const [n, items] of lists.entries()) offsets[n + 1] = offsets[n]! + (items?.length ?? 0);
  return offsets;
}

/** On fields whose values are JSON text for want of an Arrow type. */
function textMark({ isText }: Conversion, type = 'JSON'): Map<string, string> | undefined {
  return isText === true ? new Map([['floe.type', type]]) : undefined;
}

const same = (value: DuckDBValue) => value as unknown;
const big = (values: readonly unknown[]) =>
  BigInt64Array.from(values, (value) => (value as bigint | null) ?? 0n);
const int32 = (values: readonly unknown[]) =>
  Int32Array.from(values, (value) => (value as number | null) ?? 0);
const member = (name: string) => (value: DuckDBValue) =>
  (value as unknown as Record<string, unknown>)[name];

const SCALARS: Partial<Record<DuckDBTypeId, Scalar>> = {
  [DuckDBTypeId.BOOLEAN]: { type: new Bool(), convert: same },
  [DuckDBTypeId.TINYINT]: { type: new Int32(), convert: same, words: int32 },
  [DuckDBTypeId.SMALLINT]: { type: new Int32(), convert: same, words: int32 },
  [DuckDBTypeId.INTEGER]: { type: new Int32(), convert: same, words: int32 },
  [DuckDBTypeId.UTINYINT]: { type: new Int32(), convert: same, words: int32 },
  [DuckDBTypeId.USMALLINT]: { type: new Int32(), convert: same, words: int32 },
  [DuckDBTypeId.UINTEGER]: {
    type: new Uint32(),
    convert: same,
    words: (values) => Uint32Array.from(values, (value) => (value as number | null) ?? 0),
  },
  [DuckDBTypeId.BIGINT]: { type: new Int64(), convert: same, words: big },
  [DuckDBTypeId.UBIGINT]: {
    type: new Uint64(),
    convert: same,
    words: (values) => BigUint64Array.from(values, (value) => (value as bigint | null) ?? 0n),
  },
  [DuckDBTypeId.FLOAT]: {
    type: new Float32(),
    convert: same,
    words: (values) => Float32Array.from(values, (value) => (value as number | null) ?? 0),
  },
  [DuckDBTypeId.DOUBLE]: {
    type: new Float64(),
    convert: same,
    words: (values) => Float64Array.from(values, (value) => (value as number | null) ?? 0),
  },
  [DuckDBTypeId.VARCHAR]: { type: new Utf8(), convert: same },
  [DuckDBTypeId.BLOB]: { type: new Binary(), convert: member('bytes') },
  [DuckDBTypeId.DATE]: { type: new DateDay(), convert: member('days'), words: int32 },
  [DuckDBTypeId.TIME]: { type: new TimeMicrosecond(), convert: member('micros'), words: big },
  [DuckDBTypeId.TIMESTAMP]: {
    type: new TimestampMicrosecond(),
    convert: member('micros'),
    words: big,
  },
  [DuckDBTypeId.TIMESTAMP_TZ]: {
    type: new TimestampMicrosecond('UTC'),
    convert: member('micros'),
    words: big,
  },
  [DuckDBTypeId.TIMESTAMP_NS]: {
    type: new TimestampNanosecond(),
    convert: member('nanos'),
    words: big,
  },
};

/** Decimals, and integers of 128 bits as decimals without fraction. */
function decimal(scale: number, precision: number): Scalar {
  return {
    type: new Decimal(scale, precision),
    convert: (value) =>
      typeof value === 'bigint' ? value : (value as unknown as { value: bigint }).value,
    words: (values) => {
      const words = new BigUint64Array(values.length * 2);
      for (const [index, value] of values.entries()) {
        const bits = BigInt.asUintN(128, (value as bigint | null) ?? 0n);
        words[2 * index] = bits & 0xffff_ffff_ffff_ffffn;
        words[2 * index + 1] = bits >> 64n;
      }
      return new Uint32Array(words.buffer);
    },
  };
}

function conversionOf(type: DuckDBType): Conversion {
  if (type instanceof DuckDBDecimalType) return scalar(decimal(type.scale, type.width));
  if (type.typeId === DuckDBTypeId.HUGEINT) return scalar(decimal(0, 38));
  if (type instanceof DuckDBListType || type instanceof DuckDBArrayType)
    return listOf(conversionOf(type.valueType));
  if (type instanceof DuckDBMapType)
    return mapOf(conversionOf(type.keyType), conversionOf(type.valueType));
  if (type instanceof DuckDBStructType)
    return structOf(
      type.entryNames.map((name, n) => ({ name, part: conversionOf(type.entryTypes[n]!) })),
    );
  const plain = SCALARS[type.typeId];
  return plain === undefined ? jsonText : scalar(plain);
}

/** Bytes of the stream, one record batch per chunk. */
export async function* arrowStream(result: QueryResult): AsyncGenerator<Uint8Array> {
  const conversions = result.types.map(conversionOf);
  const fields = result.columns.map(({ name, type }, index) => {
    const conversion = conversions[index]!;
    return new Field(name, conversion.type, true, textMark(conversion, type));
  });
  const schema = new Schema(fields);
  const writer = new RecordBatchStreamWriter();
  writer.reset(undefined, schema);
  const bytes = writer[Symbol.asyncIterator]();
  let pending = bytes.next();
  try {
    for await (const chunk of result.chunks()) {
      writer.write(toBatch(schema, conversions, chunk));
      // The writer's queue doesn't say how much it holds: what is there now goes out, the rest with the next batch.
      for (let part = await ready(pending); part !== undefined; part = await ready(pending)) {
        pending = bytes.next();
        if (part.done !== true) yield part.value as Uint8Array;
      }
    }
    writer.finish();
    for (let part = await pending; part.done !== true; part = await bytes.next())
      yield part.value as Uint8Array;
  } finally {
    writer.close();
  }
}

/** What a promise holds by the next turn of the event loop, or undefined. */
function ready<T>(promise: Promise<T>): Promise<T | undefined> {
  return Promise.race([
    promise,
    new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined))),
  ]);
}

function toBatch(
  schema: Schema,
  conversions: readonly Conversion[],
  chunk: DuckDBDataChunk,
): RecordBatch {
  const children = conversions.map((conversion, index) =>
    conversion.toData(chunk.getColumnValues(index)),
  );
  const struct = makeData({ type: new Struct(schema.fields), length: chunk.rowCount, children });
  return new RecordBatch(schema, struct);
}

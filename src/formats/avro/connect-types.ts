// What Kafka Connect's names of types mean, Debezium's among them: they tell a date from a plain int. The names stand
// in Avro schemas as `connect.name` and in the schema part of Connect's JSON as `name`.
// Sources: Debezium reference, "Data type mappings" of each connector; Kafka Connect's data package; the usual mapping
// of Connect to Avro. Names that are not here (Year, Interval, MicroDuration, Bits, Json, Xml, Enum, geometries, …)
// leave a value as the type it is written in.
import type { AvroLogical } from './logical-type.ts';

/** Name → the type it annotates, and what it says about it. */
const CONNECT_TYPES: Readonly<Record<string, readonly [string, PlainLogical]>> = {
  'io.debezium.time.Date': ['int', 'date'],
  'io.debezium.time.Time': ['int', 'wide-time-millis'],
  'io.debezium.time.MicroTime': ['long', 'wide-time-micros'],
  'io.debezium.time.NanoTime': ['long', 'time-nanos'],
  'io.debezium.time.Timestamp': ['long', 'local-timestamp-millis'],
  'io.debezium.time.MicroTimestamp': ['long', 'local-timestamp-micros'],
  'io.debezium.time.NanoTimestamp': ['long', 'local-timestamp-nanos'],
  'io.debezium.time.ZonedTimestamp': ['string', 'zoned-timestamp'],
  'io.debezium.data.Uuid': ['string', 'uuid'],
  'org.apache.kafka.connect.data.Date': ['int', 'date'],
  'org.apache.kafka.connect.data.Time': ['int', 'wide-time-millis'],
  'org.apache.kafka.connect.data.Timestamp': ['long', 'timestamp-millis'],
};

type PlainLogical = Exclude<AvroLogical['kind'], 'decimal'>;

/** Connect's decimal: bytes of the unscaled value; the scale is a parameter. */
export const CONNECT_DECIMAL = 'org.apache.kafka.connect.data.Decimal';

/** Debezium's decimal whose scale comes with each value: a record of `scale` and `value`. */
export const VARIABLE_DECIMAL = 'io.debezium.data.VariableScaleDecimal';

/** What the name of a type on `kind` says, or undefined. */
export function connectLogical(name: unknown, kind: string): AvroLogical | undefined {
  if (typeof name !== 'string' || !Object.hasOwn(CONNECT_TYPES, name)) return undefined;
  const [on, logical] = CONNECT_TYPES[name]!;
  return on === kind ? { kind: logical } : undefined;
}

/** Iceberg's widest decimal. */
const WIDEST = 38;

/**
 * Connect knows no precision unless the source told one; converters then write 64, which no column holds. The widest
 * column serves instead: a number that has more digits is refused, not a whole column kept as text.
 */
export function connectPrecision(parameters: unknown, scale: number): number | undefined {
  const told = (parameters as Record<string, unknown> | undefined)?.['connect.decimal.precision'];
  const precision = Number(told);
  if (told !== undefined && Number.isInteger(precision) && precision > 0) return precision;
  return scale <= WIDEST ? WIDEST : undefined;
}

/** An Avro decimal with the precision that Connect's parameters give; others as they are. */
export function withConnectPrecision(json: Record<string, unknown>): Record<string, unknown> {
  if (json['connect.name'] !== CONNECT_DECIMAL) return json;
  const precision = connectPrecision(json['connect.parameters'], Number(json['scale'] ?? 0));
  return precision === undefined ? json : { ...json, precision };
}

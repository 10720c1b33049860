// Strings and numbers of a JSON Schema: what format, content encoding and the hints of Kafka Connect's converter make
// of them. Formats that aren't known stay text.
import { MAX_DECIMAL_PRECISION } from '../iceberg/primitive.ts';
import type { Shape, ShapeOptions } from './shapes.ts';

type Hints = ReadonlyMap<string, unknown>;

/** Logical types that Connect's JSON Schema converter names in `title`. */
const CONNECT = 'org.apache.kafka.connect.data.';

const TEXT: Shape = { kind: 'scalar', type: 'string', reading: 'plain' };

export function stringShape(hints: Hints, options: ShapeOptions): Shape {
  const decimal = decimalShape(hints);
  if (decimal !== undefined) return decimal;
  const encoding = hints.get('contentEncoding');
  const format = hints.get('format');
  if (hints.get('connect.type') === 'bytes' || encoding === 'base64' || format === 'byte') {
    return { kind: 'scalar', type: 'binary', reading: 'base64' };
  }
  switch (format) {
    case 'date-time':
      return { kind: 'scalar', type: 'timestamptz', reading: 'plain' };
    case 'date':
      return { kind: 'scalar', type: 'date', reading: 'plain' };
    case 'uuid':
      return { kind: 'scalar', type: 'uuid', reading: 'plain' };
    case 'time':
      return { kind: 'scalar', type: options.time, reading: 'time' };
    default:
      return TEXT;
  }
}

export function numberShape(hints: Hints, integer: boolean): Shape {
  const decimal = decimalShape(hints);
  if (decimal !== undefined) return decimal;
  switch (hints.get('title')) {
    case `${CONNECT}Timestamp`:
      return { kind: 'scalar', type: 'timestamptz', reading: 'epoch-millis' };
    case `${CONNECT}Date`:
      return { kind: 'scalar', type: 'date', reading: 'epoch-days' };
    case `${CONNECT}Time`:
      return { kind: 'scalar', type: 'string', reading: 'day-millis' };
  }
  switch (hints.get('connect.type')) {
    case 'int8':
    case 'int16':
    case 'int32':
      return { kind: 'scalar', type: 'int', reading: 'integer' };
    case 'float32':
      return { kind: 'scalar', type: 'float', reading: 'number' };
  }
  const step = hints.get('multipleOf');
  const whole = integer || (typeof step === 'number' && Number.isInteger(step));
  return whole
    ? { kind: 'scalar', type: 'long', reading: 'integer' }
    : { kind: 'scalar', type: 'double', reading: 'number' };
}

function decimalShape(hints: Hints): Shape | undefined {
  if (hints.get('title') !== `${CONNECT}Decimal`) return undefined;
  const given = hints.get('connect.parameters');
  const parameters = typeof given === 'object' && given !== null ? given : {};
  const number = (key: string) =>
    Number((parameters as Record<string, unknown>)[key] ?? Number.NaN);
  const scale = number('scale');
  const precision = number('connect.decimal.precision');
  const wide = Number.isInteger(precision) && precision > 0 ? precision : MAX_DECIMAL_PRECISION;
  if (!Number.isInteger(scale) || scale < 0 || scale > MAX_DECIMAL_PRECISION) return undefined;
  const digits = Math.min(wide, MAX_DECIMAL_PRECISION);
  return { kind: 'scalar', type: `decimal(${digits}, ${scale})`, reading: 'decimal' };
}

// Writes OTLP metrics for tests, as clients do.

type Field = readonly [number: number, value: Uint8Array | number | { readonly double: number }];

/** A protocol buffer: bytes with their length, numbers as varints, `{double}` in eight bytes. */
export function message(...fields: readonly Field[]): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const [number, value] of fields) {
    if (typeof value === 'number') parts.push(varint(number * 8), varint(value));
    else if (value instanceof Uint8Array) {
      parts.push(varint(number * 8 + 2), varint(value.length), value);
    } else {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleLE(value.double);
      parts.push(varint(number * 8 + 1), bytes);
    }
  }
  return Buffer.concat(parts);
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return Uint8Array.from([...bytes, left]);
    bytes.push((left % 128) + 128);
  }
}

const text = (value: string) => Buffer.from(value);

export interface PointInput {
  readonly value: number;
  readonly attributes?: Readonly<Record<string, string>>;
}

function point({ value, attributes = {} }: PointInput): Uint8Array {
  const pairs = Object.entries(attributes).map(
    ([name, own]): Field => [7, message([1, text(name)], [2, message([1, text(own)])])],
  );
  return message([4, { double: value }], ...pairs);
}

export function gauge(name: string, ...points: readonly PointInput[]): Uint8Array {
  const body = message(...points.map((one): Field => [1, point(one)]));
  return message([1, text(name)], [5, body]);
}

/** Temporality: 1 delta, 2 cumulative. */
export function sum(
  name: string,
  temporality: number,
  ...points: readonly PointInput[]
): Uint8Array {
  const all = points.map((one): Field => [1, point(one)]);
  return message([1, text(name)], [7, message(...all, [2, temporality], [3, 1])]);
}

/** A whole push. */
export function metricsData(...metrics: readonly Uint8Array[]): Uint8Array {
  const scope = message(...metrics.map((metric): Field => [2, metric]));
  return message([1, message([2, scope])]);
}

// Random values for any message definition, from a seed: what the protocol's fuzz tests start from.
import type { Prng } from '../../src/base/prng.ts';
import { uuidToText } from '../../src/base/prng.ts';
import type { FieldData, Schema } from '../../src/protocol/fields.ts';
import { inVersions } from '../../src/protocol/versions.ts';

/** A value with every field of `version` at random and the others at their defaults, as decoding yields it. */
export function randomMessage(
  schema: Schema,
  version: number,
  prng: Prng,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema).map(([name, field]) => [
      name,
      inVersions(field.versions, version) ? randomValue(field, version, prng) : absent(field),
    ]),
  );
}

/** What a field decodes to where it isn't on the wire. */
export function absent(field: FieldData): unknown {
  if (field.fields === undefined || field.fallback === null) return field.fallback;
  return Object.fromEntries(
    Object.entries(field.fields).map(([name, inner]) => [name, absent(inner)]),
  );
}

function randomValue(field: FieldData, version: number, prng: Prng): unknown {
  if (inVersions(field.nullVersions, version) && prng.int(4) === 0) return null;
  switch (field.kind) {
    case 'array':
      return Array.from({ length: prng.int(4) }, () => randomValue(field.element!, version, prng));
    case 'struct':
      return randomMessage(field.fields!, version, prng);
    case 'bytes':
    case 'records':
      return Buffer.from(prng.bytes(prng.int(50)));
    default:
      return RANDOM[field.kind](prng);
  }
}

type Simple = Exclude<FieldData['kind'], 'array' | 'struct' | 'bytes' | 'records'>;

const RANDOM: Readonly<Record<Simple, (prng: Prng) => unknown>> = {
  bool: (prng) => prng.int(2) === 1,
  int8: (prng) => prng.int(256) - 128,
  int16: (prng) => prng.int(65_536) - 32_768,
  uint16: (prng) => prng.int(65_536),
  int32: (prng) => prng.int(2 ** 32) - 2 ** 31,
  int64: (prng) =>
    prng.int(2) === 0 ? prng.int(100) - 1 : prng.int(2 ** 32) * (prng.int(2 ** 20) - 2 ** 19),
  float64: (prng) => prng.next() * 1e9,
  string: (prng) => ['', 'a', 'topic-name', 'süß 🧊', 'x'.repeat(300)][prng.int(5)],
  uuid: (prng) => uuidToText(prng.bytes(16)),
};

// The format's own vectors, where the data set is present beside the repository.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { uuidToBytes } from '../../base/prng.ts';
import { parseIcebergJson, parseTableMetadata, serialiseTableMetadata } from './json.ts';
import { parsePrimitive } from './primitive.ts';
import { bucketHash, compileTransform, parseTransform, partitionValueText } from './transform.ts';
import type { PartitionValue, PrimitiveTypeName } from './types.ts';
import { parseDecimal, singleValueFromJson } from './value.ts';

const folder = new URL('../../../../shared/data/iceberg-vectors/', import.meta.url);
const json = (name: string) => parseIcebergJson(readFileSync(new URL(name, folder), 'utf8'));

interface Vector {
  readonly type: string;
  readonly value: unknown;
  readonly transform: string;
  readonly result: unknown;
  readonly human?: string;
  readonly hash: number;
}

/** Vectors hold ticks as numbers, decimals and uuids as text, bytes as hex. */
function toValue(type: string, value: unknown): PartitionValue {
  const { kind, scale } = parsePrimitive(type);
  if (kind === 'decimal') return parseDecimal(String(value), scale)!;
  if (kind === 'uuid') return uuidToBytes(value as string);
  if (kind === 'binary' || kind === 'fixed')
    return new Uint8Array(Buffer.from(value as string, 'hex'));
  if (['long', 'time', 'timestamp'].includes(kind)) return BigInt(value as number);
  return value as PartitionValue;
}

const plain = (value: PartitionValue) => (typeof value === 'bigint' ? Number(value) : value);

describe.skipIf(!existsSync(folder))('vectors', () => {
  test('transforms', () => {
    for (const { transform, type, value, result, human } of json('transforms.json') as Vector[]) {
      const parsed = parseTransform(transform);
      const got = compileTransform(parsed, type as PrimitiveTypeName)(toValue(type, value));
      const expected =
        typeof result === 'string' ? toValue(type, result) : (result as PartitionValue);
      expect(plain(got), `${transform}(${String(value)}: ${type})`).toEqual(plain(expected));
      if (human !== undefined)
        expect(partitionValueText(parsed, type as PrimitiveTypeName, got)).toBe(human);
    }
  });

  test('bucket hashes', () => {
    for (const { type, value, hash } of json('bucket-hash.json') as Vector[]) {
      const { kind } = parsePrimitive(type);
      const temporal = /^(date|time)/.test(kind);
      const input = temporal ? singleValueFromJson(type, value) : toValue(type, value)!;
      expect(bucketHash(type, input), `${type} ${String(value)}`).toBe(hash);
    }
  });

  test('table metadata: valid ones survive a round trip, others are refused', () => {
    const files = readdirSync(new URL('table-metadata/', folder));
    for (const name of files) {
      const source = readFileSync(new URL(`table-metadata/${name}`, folder), 'utf8');
      if (/Missing|NotFound|Unsupported/.test(name) && !name.includes('V1Missing')) {
        expect(() => parseTableMetadata(source), name).toThrow();
      } else {
        const metadata = parseTableMetadata(source);
        expect(parseTableMetadata(serialiseTableMetadata(metadata)), name).toEqual(metadata);
      }
    }
  });
});

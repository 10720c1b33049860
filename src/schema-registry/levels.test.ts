// The recorded verdicts of Apache Avro, and of Confluent's documentation for the other formats.
import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { formatOf } from './formats.ts';
import { type CompatibilityLevel, comparedVersions, incompatibilities } from './levels.ts';

const CASES = new URL('../../../shared/oracles/schema-registry/compat-cases.json', import.meta.url);

interface Case {
  readonly type: string;
  readonly name: string;
  readonly level: CompatibilityLevel;
  readonly old: readonly unknown[];
  readonly new: unknown;
  readonly compatible: boolean;
}

test.skipIf(!existsSync(CASES)).each(['AVRO', 'JSON', 'PROTOBUF'])('verdicts for %s', (type) => {
  const { cases } = JSON.parse(readFileSync(CASES, 'utf8')) as { cases: Case[] };
  const format = formatOf(type)!;
  const parse = (schema: unknown) =>
    format.parse(type === 'PROTOBUF' ? String(schema) : JSON.stringify(schema), [], {
      validateDefaults: false,
    });
  const wrong = cases.filter((one) => {
    if (one.type !== type) return false;
    const reasons = comparedVersions(one.level, one.old).flatMap((old) =>
      incompatibilities(format, one.level, {
        schema: parse(one.new),
        earlier: { version: 1, text: '', schema: parse(old) },
      }),
    );
    return (reasons.length === 0) !== one.compatible;
  });
  expect(wrong).toEqual([]);
});

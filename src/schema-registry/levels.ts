// The seven compatibility levels: which versions a new schema is compared with, and in which direction.
// Not here: the comparison itself (avro/compatibility.ts).
import { differences, type Incompatibility } from './avro/compatibility.ts';
import type { AvroSchema } from './avro/schema.ts';

export const LEVELS = [
  'NONE',
  'BACKWARD',
  'BACKWARD_TRANSITIVE',
  'FORWARD',
  'FORWARD_TRANSITIVE',
  'FULL',
  'FULL_TRANSITIVE',
] as const;
export type CompatibilityLevel = (typeof LEVELS)[number];

/** Confluent's global default. */
export const DEFAULT_LEVEL: CompatibilityLevel = 'BACKWARD';

export interface EarlierSchema {
  readonly version: number;
  readonly text: string;
  readonly schema: AvroSchema;
}

/** Which of a subject's versions (oldest first) the level compares with, newest first. */
export function comparedVersions<T>(
  level: CompatibilityLevel,
  versions: readonly T[],
): readonly T[] {
  if (level === 'NONE') return [];
  return level.endsWith('_TRANSITIVE') ? versions.toReversed() : versions.slice(-1);
}

/** Why `schema` may not follow `earlier` under `level`; empty when it may. */
export function incompatibilities(
  level: CompatibilityLevel,
  schema: AvroSchema,
  earlier: EarlierSchema,
): readonly string[] {
  const found = [
    ...(level.startsWith('BACKWARD') || level.startsWith('FULL')
      ? differences(schema, earlier.schema).map((item) => describe(item, 'new', 'old'))
      : []),
    ...(level.startsWith('FORWARD') || level.startsWith('FULL')
      ? differences(earlier.schema, schema).map((item) => describe(item, 'old', 'new'))
      : []),
  ];
  if (found.length === 0) return [];
  return [
    ...found,
    `{oldSchemaVersion: ${earlier.version}}`,
    `{oldSchema: '${earlier.text}'}`,
    `{compatibility: '${level}'}`,
  ];
}

function describe(item: Incompatibility, reader: 'new' | 'old', writer: 'new' | 'old'): string {
  return `{errorType:'${item.type}', description:'${sentence(item, reader, writer)}', additionalInfo:'${item.detail}'}`;
}

function sentence({ type, path, detail }: Incompatibility, reader: string, writer: string): string {
  switch (type) {
    case 'NAME_MISMATCH':
      return `The name of the schema has changed (path '${path}')`;
    case 'FIXED_SIZE_MISMATCH':
      return `The size of FIXED type field at path '${path}' in the ${reader} schema does not match with the ${writer} schema`;
    case 'MISSING_ENUM_SYMBOLS':
      return `The ${reader} schema is missing enum symbols '${detail}' at path '${path}' in the ${writer} schema`;
    case 'READER_FIELD_MISSING_DEFAULT_VALUE':
      return `The field '${detail}' at path '${path}' in the ${reader} schema has no default value and is missing in the ${writer} schema`;
    case 'TYPE_MISMATCH':
      return `The type (path '${path}') of a field in the ${reader} schema does not match with the ${writer} schema`;
    case 'MISSING_UNION_BRANCH':
      return `The ${reader} schema is missing a type inside a union field at path '${path}' in the ${writer} schema`;
  }
}

// The seven compatibility levels: which versions a new schema is compared with, and in which direction.
// Not here: the comparison itself (compatibility.ts of each format).
import type { SchemaFormat } from './format.ts';

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

export interface EarlierSchema<S> {
  readonly version: number;
  readonly text: string;
  readonly schema: S;
}

/** Which of a subject's versions (oldest first) the level compares with, newest first. */
export function comparedVersions<T>(
  level: CompatibilityLevel,
  versions: readonly T[],
): readonly T[] {
  if (level === 'NONE') return [];
  return level.endsWith('_TRANSITIVE') ? versions.toReversed() : versions.slice(-1);
}

/** Why `schema` may not follow `earlier` of the same format under `level`; empty when it may. */
export function incompatibilities<S>(
  format: SchemaFormat<S>,
  level: CompatibilityLevel,
  { schema, earlier }: { readonly schema: S; readonly earlier: EarlierSchema<S> },
): readonly string[] {
  const backward = level.startsWith('BACKWARD') || level.startsWith('FULL');
  const forward = level.startsWith('FORWARD') || level.startsWith('FULL');
  const found = [
    ...(backward
      ? format.differences(schema, earlier.schema, { reader: 'new', writer: 'old' })
      : []),
    ...(forward
      ? format.differences(earlier.schema, schema, { reader: 'old', writer: 'new' })
      : []),
  ];
  return found.length === 0 ? [] : [...found, ...context(level, earlier)];
}

/** What every verdict ends with: the version and level it is about. */
export function context(
  level: CompatibilityLevel,
  { version, text }: { readonly version: number; readonly text: string },
): readonly string[] {
  return [
    `{oldSchemaVersion: ${version}}`,
    `{oldSchema: '${text}'}`,
    `{compatibility: '${level}'}`,
  ];
}

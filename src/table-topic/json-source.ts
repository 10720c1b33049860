// JSON values as sources of columns: decoded by what is bound, inferred where the table has no place for them yet.
// Columns of other types for a field have paths of their own (formats/json/paths.ts), so evolution never meets a
// conflict here; what `evolution.incompatible` refuses is left out of the proposal instead.
import {
  type Bindings,
  isNumbered,
  type ProposedStruct,
} from '../formats/arrow/proposed-schema.ts';
import { findField } from '../formats/iceberg/schema.ts';
import type { Schema } from '../formats/iceberg/types.ts';
import { compileJsonDecoder, UNFIT } from '../formats/json/decoder.ts';
import { type CommittedColumn, JsonInference } from '../formats/json/infer.ts';
import { ignoredPaths } from './column-selection.ts';
import type { Converter, ConverterTarget } from './converter.ts';
import { type FieldMap, isSourcePath } from './evolve.ts';
import type { JobConfig } from './job.ts';
import { SYSTEM_PREFIX } from './system-columns.ts';

export function newInference(config: JobConfig): JsonInference {
  return new JsonInference({
    maxColumns: config['table.topic.json.max.columns'],
    timestamps: config['table.topic.json.infer.timestamps'],
  });
}

/** Decodes; a record that doesn't fit is noted in `needs`, and refused once nothing more can be had for it. */
export function compileJsonValue(target: ConverterTarget): Converter {
  const { columns, table, config, fault, needs } = target;
  const ignores = ignoredPaths({
    include: config['table.topic.columns.include'],
    exclude: config['table.topic.columns.exclude'],
  });
  const decoder = compileJsonDecoder(columns, jsonBindings(table.bindings, ignores), {
    maxColumns: config['table.topic.json.max.columns'],
    ...(ignores === undefined ? {} : { ignores }),
  });
  return (bytes, start, length) => {
    const reason = decoder.decode(bytes, start, start + length);
    if (reason === undefined) return true;
    if (reason !== UNFIT) return fault.set('value', 'not_json', reason);
    if (!needs.final) {
      needs.json ??= newInference(config);
      needs.json.add(bytes, start, start + length);
      needs.json.force(decoder.misfits);
    }
    return fault.set('value', 'incompatible_type', UNFIT);
  };
}

/** The part of a field map that is JSON's: the system's columns aren't, nor second types by schema. */
function jsonBindings(bindings: Bindings, ignores: (path: string) => boolean = () => false) {
  return new Map([...bindings].filter(([path]) => isJsonPath(path) && !ignores(path)));
}

const isJsonPath = (path: string) =>
  !path.startsWith(SYSTEM_PREFIX) && isSourcePath(path) && !isNumbered(path);

/** What inference must know of the committed table. */
export function committedColumns(
  schema: Schema,
  fields: FieldMap,
): ReadonlyMap<string, CommittedColumn> {
  const committed = new Map<string, CommittedColumn>();
  for (const [path, id] of fields) {
    if (!isJsonPath(path)) continue;
    const field = findField(schema, id);
    if (field !== undefined) committed.set(path, { name: field.name, type: field.type });
  }
  return committed;
}

/** `path\type`: names are escaped in paths, so a backslash before a letter only stands there. */
const VARIANT = /^(.+)\\[a-z]+$/;

/** New columns of a proposal that are further types of a committed field, by their names. */
export function furtherTypes(proposed: ProposedStruct, fields: FieldMap): string[] {
  return proposed.fields
    .filter(({ path }) => {
      const base = VARIANT.exec(path)?.[1];
      return base !== undefined && fields.has(base) && !fields.has(path);
    })
    .map((field) => field.name);
}

/** The proposal without columns of those names. */
export function without(proposed: ProposedStruct, names: readonly string[]): ProposedStruct {
  return { ...proposed, fields: proposed.fields.filter((field) => !names.includes(field.name)) };
}

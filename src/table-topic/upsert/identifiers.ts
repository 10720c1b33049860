// `identifier-field-ids` of upsert tables (rule K2): engines that upsert by themselves read there what makes a row. Iceberg
// wants such columns required and exact; a column is made so when its table is created, while nothing is in it, and made
// optional again when the config wants other ones. Pure. Not for: Floe's own key, which is the config's (id-columns.ts).
import { findField } from '../../formats/iceberg/schema.ts';
import type { NestedField, Schema } from '../../formats/iceberg/types.ts';
import type { ColumnPath } from '../column-list.ts';
import type { TopicConfigs } from '../settings/index.ts';

/** The table property that says Floe set the identifier fields: what others set stays. */
export const IDENTIFIERS_PROPERTY = 'floe.identifier-fields';

const INEXACT = new Set(['float', 'double']);

/** The columns that no row may lack: empty unless nulls among them are refused. */
export function wantedIdentifiers(
  config: Pick<
    TopicConfigs,
    'table.topic.upsert.enable' | 'table.topic.id.columns' | 'table.topic.id.null'
  >,
): readonly ColumnPath[] {
  if (!config['table.topic.upsert.enable'] || config['table.topic.id.null'] !== 'error') return [];
  return config['table.topic.id.columns'];
}

/** The schema of a new table with its identifiers; as it is when one of them can't be: all or none. */
export function withIdentifiers(schema: Schema, wanted: readonly ColumnPath[]): Schema {
  const ids = wanted.map((path) => identifierId(schema, path));
  if (ids.length === 0 || ids.includes(undefined)) return schema;
  const required = (field: NestedField) =>
    ids.includes(field.id) ? { ...field, required: true } : field;
  return {
    ...schema,
    fields: schema.fields.map(required),
    'identifier-field-ids': ids as number[],
  };
}

/** Inside structs a column would need its struct to be required, which a source may leave out. */
function identifierId(schema: Schema, path: ColumnPath): number | undefined {
  const field = path.length === 1 ? findField(schema, path[0]!) : undefined;
  if (typeof field?.type !== 'string' || field.repeated || INEXACT.has(field.type))
    return undefined;
  return field.id;
}

/** The schema without the identifiers that Floe set, where the config wants other ones: a row may lack them then. */
export function withoutOtherIdentifiers(schema: Schema, wanted: readonly ColumnPath[]): Schema {
  const present = schema['identifier-field-ids'] ?? [];
  const now = wanted.map((path) => identifierId(schema, path));
  if (present.length === 0 || present.join() === now.join()) return schema;
  const { 'identifier-field-ids': _, ...rest } = schema;
  return {
    ...rest,
    fields: schema.fields.map((field) =>
      present.includes(field.id) ? { ...field, required: false } : field,
    ),
  };
}

// A table as Glue shows it in its console and to Athena: columns for people, parameters that point to the metadata
// file. Only `metadata_location` is ever read back: the columns are a courtesy, in Hive's words for types.
// Source: Iceberg's Glue catalog, the "iceberg.field.*" parameters; Athena, "Iceberg tables".
import type { Column, Table, TableInput } from '@aws-sdk/client-glue';
import {
  currentSchema,
  type IcebergType,
  type NestedField,
  type TableMetadata,
} from '../../formats/iceberg/index.ts';

export const METADATA_LOCATION = 'metadata_location';
const PREVIOUS_METADATA_LOCATION = 'previous_metadata_location';
const TABLE_TYPE = 'table_type';

/** Glue's limits of a column, in characters. */
const MAX_TYPE = 131_072;
const MAX_COMMENT = 255;
const MAX_DESCRIPTION = 2_048;

export interface TableInputRequest {
  readonly name: string;
  readonly metadata: TableMetadata;
  readonly location: string;
  /** The table as it is in Glue; undefined for a new one. */
  readonly before: Table | undefined;
}

export function tableInput({ name, metadata, location, before }: TableInputRequest): TableInput {
  const previous = before?.Parameters?.[METADATA_LOCATION];
  const description = metadata.properties?.['comment'] ?? before?.Description;
  return {
    Name: name,
    TableType: 'EXTERNAL_TABLE',
    Parameters: {
      ...before?.Parameters,
      [TABLE_TYPE]: 'ICEBERG',
      [METADATA_LOCATION]: location,
      ...(previous === undefined ? {} : { [PREVIOUS_METADATA_LOCATION]: previous }),
    },
    ...(description === undefined ? {} : { Description: description.slice(0, MAX_DESCRIPTION) }),
    ...(before?.Owner === undefined ? {} : { Owner: before.Owner }),
    StorageDescriptor: {
      Location: metadata.location,
      Columns: glueColumns(metadata, before?.StorageDescriptor?.Columns ?? []),
    },
  };
}

/** True for a Glue table that Iceberg clients look after. */
export function isIceberg(table: Table): boolean {
  return table.Parameters?.[TABLE_TYPE]?.toUpperCase() === 'ICEBERG';
}

/** Columns of the current schema, then those of earlier ones; comments that people made in Glue stay. */
function glueColumns(metadata: TableMetadata, before: readonly Column[]): Column[] {
  const current = currentSchema(metadata);
  const comments = new Map<string, string>();
  for (const { Name, Comment } of before)
    if (Name !== undefined && Comment !== undefined && !comments.has(Name))
      comments.set(Name, Comment);
  const columns = new Map<string, Column>();
  for (const schema of [current, ...metadata.schemas])
    for (const field of schema.fields) {
      if (columns.has(field.name)) continue;
      const comment = field.doc || comments.get(field.name);
      columns.set(field.name, glueColumn(field, { comment, current: schema === current }));
    }
  return [...columns.values()];
}

function glueColumn(
  field: NestedField,
  { comment, current }: { readonly comment: string | undefined; readonly current: boolean },
): Column {
  const type = hiveType(field.type);
  return {
    Name: field.name,
    Type: type.length > MAX_TYPE ? 'string' : type,
    ...(comment === undefined ? {} : { Comment: comment.slice(0, MAX_COMMENT) }),
    Parameters: {
      'iceberg.field.id': String(field.id),
      'iceberg.field.optional': String(!field.required),
      'iceberg.field.current': String(current),
    },
  };
}

const HIVE: Readonly<Record<string, string>> = {
  long: 'bigint',
  time: 'string',
  uuid: 'string',
  timestamptz: 'timestamp',
  timestamp_ns: 'timestamp',
  timestamptz_ns: 'timestamp',
};

/** The type in Hive's words. */
export function hiveType(type: IcebergType): string {
  if (typeof type === 'string') {
    if (type.startsWith('fixed[')) return 'binary';
    if (type.startsWith('decimal(')) return type.replaceAll(' ', '');
    return HIVE[type] ?? type;
  }
  switch (type.type) {
    case 'struct': {
      const fields = type.fields.map((field) => `${field.name}:${hiveType(field.type)}`);
      return `struct<${fields.join(',')}>`;
    }
    case 'list':
      return `array<${hiveType(type.element)}>`;
    case 'map':
      return `map<${hiveType(type.key)},${hiveType(type.value)}>`;
  }
}

// SQL text made safely: identifiers, literals, and DuckDB's names of Iceberg types.
import { FloeError } from '../base/error.ts';
import {
  type IcebergType,
  isList,
  isMap,
  isStruct,
  parsePrimitive,
} from '../formats/iceberg/index.ts';

export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;

export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** A path for read_parquet, which takes every path for a pattern. */
export const pathLiteral = (path: string) => literal(path.replaceAll(/[*?[]/g, '[$&]'));

/** Columns that DuckDB adds to `read_parquet`: the row's place in its file, the file's in the list. */
export const FILE_ROW = 'file_row_number';
export const FILE_INDEX = 'file_index';

/** A value for each file of a `read_parquet`, in its order. It costs less than a join by file name. */
export const perFile = (values: readonly (number | string)[]) =>
  `([${values.join(', ')}])[${FILE_INDEX}::BIGINT + 1]`;

/** DuckDB's type. @throws FloeError `unsupported` for types that DuckDB can't read from Parquet. */
export function duckType(type: IcebergType): string {
  if (isStruct(type)) {
    const fields = type.fields.map((field) => `${identifier(field.name)} ${duckType(field.type)}`);
    return `STRUCT(${fields.join(', ')})`;
  }
  if (isList(type)) return `${duckType(type.element)}[]`;
  if (isMap(type)) return `MAP(${duckType(type.key)}, ${duckType(type.value)})`;
  const { kind, precision, scale } = parsePrimitive(type);
  if (kind === 'decimal') return `DECIMAL(${precision}, ${scale})`;
  const name = PLAIN[kind];
  if (name === undefined)
    throw new FloeError('unsupported', `a column of type ${type} can't be queried here`);
  return name;
}

const PLAIN: Readonly<Record<string, string>> = {
  boolean: 'BOOLEAN',
  int: 'INTEGER',
  long: 'BIGINT',
  float: 'FLOAT',
  double: 'DOUBLE',
  date: 'DATE',
  time: 'TIME',
  timestamp: 'TIMESTAMP',
  timestamptz: 'TIMESTAMP WITH TIME ZONE',
  timestamp_ns: 'TIMESTAMP_NS',
  string: 'VARCHAR',
  uuid: 'UUID',
  fixed: 'BLOB',
  binary: 'BLOB',
  variant: 'VARIANT',
};

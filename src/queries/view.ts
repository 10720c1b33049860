// A scan plan → the SELECT of a view that gives exactly the table's rows: columns by field id (renames, added and promoted
// columns, defaults), position deletes, deletion vectors and equality deletes applied.
// DuckDB reads, joins and prunes row groups; which files take part was decided by the plan.
import { FloeError } from '../base/error.ts';
import {
  type BoundPartitionSpec,
  findField,
  identityValues,
  isPrimitive,
  type NestedField,
  partitionKey,
  type ScanDelete,
  type ScanFile,
  type ScanPlan,
  type Schema,
} from '../formats/iceberg/index.ts';
import {
  type DeletedRows,
  type DeletedTable,
  hasDeletedRows,
  parquetOnly,
  withoutDeleted,
} from './deleted-rows.ts';
import type { Layout } from './layout.ts';
import { columnExpression, constantText } from './projection.ts';
import {
  duckType,
  FILE_INDEX,
  FILE_ROW,
  identifier,
  literal,
  pathLiteral,
  perFile,
} from './sql-text.ts';

export interface ViewInput {
  readonly plan: ScanPlan;
  /** All schemas of the table: an equality delete may name a column that was dropped since. */
  readonly schemas: readonly Schema[];
  /** Where DuckDB finds a file, by its URI. */
  readonly pathOf: (uri: string) => string;
  /** The table of rows that are deleted by their place (deleted-rows.ts); undefined when there are none. */
  readonly deletedTable: DeletedTable | undefined;
  /** Files with rows in that table that no delete of the plan names. */
  readonly gone: DeletedRows['gone'];
  /** Layouts of the files that need one (layout.ts), by URI. */
  readonly layouts: ReadonlyMap<string, Layout>;
  readonly specOf: (specId: number) => BoundPartitionSpec;
}

/** Rows are told apart by their file's place in the plan and their place in the file: numbers, not names. */
interface NumberedFile extends ScanFile {
  readonly number: number;
}

/**
 * Files pay for the kinds of deletes that they have and no more: those without any are read as they are.
 * @throws FloeError `unsupported` for files or types that can't be read.
 */
export function viewQuery(input: ViewInput): string {
  const { schema } = input.plan;
  const files = input.plan.files.map((file, number) => ({ ...file, number }));
  const columns = schema.fields.map(
    (field) => `${internal(field.id)} AS ${identifier(field.name)}`,
  );
  if (columns.length === 0) throw new FloeError('unsupported', 'the table has no columns');
  const kinds = Map.groupBy(files, (file) => deletesOf(input, file));
  const parts: string[] = [];
  const clean = kinds.get('none');
  if (clean !== undefined) parts.push(scan(input, clean, { fields: schema.fields }));
  const placed = kinds.get('rows');
  if (placed !== undefined) parts.push(withoutRows(input, placed));
  const keyed = kinds.get('keys');
  if (keyed !== undefined) parts.push(withoutKeys(input, keyed));
  if (parts.length === 0) return emptyQuery(schema);
  return parts.map((part) => `SELECT ${columns.join(', ')} FROM ${part}`).join('\nUNION ALL\n');
}

/** `keys`: equality deletes, whatever else. */
function deletesOf(input: ViewInput, file: ScanFile): 'none' | 'rows' | 'keys' {
  if (file.equalityDeletes.length > 0) return 'keys';
  return hasDeletedRows(file, input.gone) ? 'rows' : 'none';
}

/** Columns are called by their ids inside, so that no user's column meets one of ours. */
const internal = (fieldId: number) => identifier(`c${fieldId}`);

function emptyQuery(schema: Schema): string {
  const columns = schema.fields.map(
    (field) => `NULL::${duckType(field.type)} AS ${identifier(field.name)}`,
  );
  return `SELECT ${columns.join(', ')} WHERE false`;
}

interface ScanShape {
  readonly fields: readonly NestedField[];
  /** With `__floe_file`, the file's number, and `__floe_row`, which deletes are found by. */
  readonly located?: boolean;
}

/** A relation of columns `c<id>`; a file that lacks one gives its default. */
function scan(input: ViewInput, files: readonly NumberedFile[], shape: ScanShape): string {
  for (const { file } of files) {
    if (file.fileFormat !== 'PARQUET')
      throw new FloeError(
        'unsupported',
        `${file.fileFormat} data files can't be queried here: ${file.filePath}`,
      );
  }
  const groups = Map.groupBy(files, (file) => layoutKey(input, file));
  const parts = [...groups.values()].map((group) => scanGroup(input, group, shape));
  return parts.length === 1
    ? parts[0]!
    : `(${parts.map((part) => `FROM ${part}`).join(' UNION ALL ')})`;
}

/** Files are read together when their layouts are equal, and what they leave to the partition is too. */
function layoutKey(input: ViewInput, { file }: ScanFile): string {
  const layout = input.layouts.get(file.filePath);
  if (layout === undefined) return '';
  const has = new Set(layout.columns.map((column) => column.fieldId));
  const left = [...identityValues(file, input.specOf(file.specId)).keys()].some(
    (id) => !has.has(id),
  );
  if (!left) return layout.text;
  return `${layout.text}\u0000${partitionKey(file.specId, file.partition)}`;
}

function scanGroup(input: ViewInput, files: readonly NumberedFile[], shape: ScanShape): string {
  const { fields, located = false } = shape;
  const paths = files.map(({ file }) => pathLiteral(input.pathOf(file.filePath))).join(', ');
  const places = located
    ? [`${perFile(files.map(({ number }) => number))} AS __floe_file`, `${FILE_ROW} AS __floe_row`]
    : [];
  const [{ file }] = files as [NumberedFile];
  const layout = input.layouts.get(file.filePath);
  if (layout === undefined) {
    const table = `read_parquet([${paths}], schema = ${schemaMap(fields)}, hive_partitioning = false)`;
    return located ? `(SELECT *, ${places.join(', ')} FROM ${table})` : table;
  }
  if (located) checkNames(layout, file.filePath);
  const values = identityValues(file, input.specOf(file.specId));
  const columns = fields.map(
    (field) => `${columnExpression(field, layout, values)} AS ${internal(field.id)}`,
  );
  return `(SELECT ${[...columns, ...places].join(', ')} FROM read_parquet([${paths}], hive_partitioning = false))`;
}

/** A file's own columns hide those that DuckDB adds. */
function checkNames({ columns }: Layout, uri: string): void {
  const taken = columns.find(({ name }) => [FILE_ROW, FILE_INDEX].includes(name.toLowerCase()));
  if (taken !== undefined)
    throw new FloeError(
      'unsupported',
      `a file with deletes and a column named ${taken.name} can't be queried here: ${uri}`,
    );
}

function schemaMap(fields: readonly NestedField[]): string {
  const entries = fields.map(
    (field) =>
      `${field.id}: {name: ${literal(`c${field.id}`)}, type: ${literal(duckType(field.type))}, default_value: ${defaultOf(field)}}`,
  );
  return `MAP {${entries.join(', ')}}`;
}

/** `initial-default` in the JSON form of appendix D, which DuckDB casts from text. */
function defaultOf(field: NestedField): string {
  const value = field['initial-default'];
  if (value === undefined || value === null || typeof value === 'object') return 'NULL::VARCHAR';
  return isPrimitive(field.type) ? literal(constantText(field.type, value)) : 'NULL::VARCHAR';
}

function withoutRows(input: ViewInput, files: readonly NumberedFile[]): string {
  const { fields } = input.plan.schema;
  const { join, where } = withoutDeleted(input.deletedTable!);
  return `${scan(input, files, { fields, located: true })} t ${join} WHERE ${where}`;
}

function withoutKeys(input: ViewInput, files: readonly NumberedFile[]): string {
  const { schema } = input.plan;
  const groups = equalityGroups(files, input.schemas);
  const extra = groups
    .flatMap((group) => group.fields)
    .filter((field, index, all) => all.findIndex((other) => other.id === field.id) === index)
    .filter((field) => findField(schema, field.id) === undefined);
  const partitions = new PartitionNumbers();
  const rows = files.map(
    ({ file, number, sequenceNumber }) => `(${number}, ${sequenceNumber}, ${partitions.of(file)})`,
  );
  const joins = groups
    .flatMap((group) => equalityJoins(input, group, partitions))
    .map(({ relation, on }, n) => `ANTI JOIN ${relation} e${n} ON ${on(`e${n}`)}`);
  const byRow = input.deletedTable === undefined ? undefined : withoutDeleted(input.deletedTable);
  return `(SELECT d.*, f.seq, f.part FROM ${scan(input, files, { fields: [...schema.fields, ...extra], located: true })} d
    JOIN (VALUES ${rows.join(', ')}) f(file, seq, part) ON d.__floe_file = f.file) t
  ${[...joins, byRow?.join ?? ''].join('\n  ')} WHERE ${byRow?.where ?? 'true'}`;
}

/** Equality deletes over the same columns. */
interface EqualityGroup {
  readonly fields: readonly NestedField[];
  readonly deletes: readonly ScanDelete[];
}

function equalityGroups(files: readonly ScanFile[], schemas: readonly Schema[]): EqualityGroup[] {
  const groups = new Map<string, ScanDelete[]>();
  const deletes = new Map(
    files.flatMap((file) => file.equalityDeletes).map((one) => [one.file.filePath, one]),
  );
  for (const one of deletes.values()) {
    const key = [...(one.file.equalityIds ?? [])].sort((a, b) => a - b).join();
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups].map(([key, group]) => ({
    deletes: group,
    fields: key.split(',').map((id) => topLevelField(Number(id), schemas)),
  }));
}

function topLevelField(id: number, schemas: readonly Schema[]): NestedField {
  for (const schema of schemas.toReversed()) {
    const found = schema.fields.find((field) => field.id === id);
    if (found !== undefined) return found;
  }
  throw new FloeError('unsupported', `equality deletes by nested or unknown field ${id}`);
}

/**
 * A delete takes rows that are older than it, in its own partition or, when its spec has none, anywhere. Nulls are equal.
 * Joins of comparisons alone: for `OR` DuckDB compares each row with each, for `NOT EXISTS` it first makes rows distinct.
 */
function equalityJoins(
  input: ViewInput,
  { fields, deletes }: EqualityGroup,
  partitions: PartitionNumbers,
): { readonly relation: string; readonly on: (alias: string) => string }[] {
  const keys = fields.map((field) => internal(field.id));
  const scopes = Map.groupBy(deletes, ({ file }) => file.partition.length > 0);
  return [...scopes].map(([isPartitioned, inScope]) => {
    const paths = inScope.map(({ file }) => pathLiteral(input.pathOf(parquetOnly(file).filePath)));
    const sequences = perFile(inScope.map(({ sequenceNumber }) => sequenceNumber));
    const part = isPartitioned ? perFile(inScope.map(({ file }) => partitions.of(file))) : '0';
    return {
      relation: `(SELECT ${keys.join(', ')}, ${part} AS part, max(${sequences}) AS seq
      FROM read_parquet([${paths.join(', ')}], schema = ${schemaMap(fields)}, hive_partitioning = false) GROUP BY ALL)`,
      on: (e) =>
        [
          ...keys.map((key) => `${e}.${key} IS NOT DISTINCT FROM t.${key}`),
          `${e}.seq > t.seq`,
          ...(isPartitioned ? [`${e}.part = t.part`] : []),
        ].join(' AND '),
    };
  });
}

/** Partition tuples as small numbers, to be compared in SQL. */
class PartitionNumbers {
  readonly #numbers = new Map<string, number>();

  of(file: ScanDelete['file']): number {
    const key = partitionKey(file.specId, file.partition);
    const number = this.#numbers.get(key) ?? this.#numbers.size;
    this.#numbers.set(key, number);
    return number;
  }
}

// A scan plan → the SELECT of a view that gives exactly the table's rows: columns by field id (renames, added and promoted
// columns, defaults), position deletes, deletion vectors and equality deletes applied.
// DuckDB reads, joins and prunes row groups; which files take part was decided by the plan.
import { FloeError } from '../base/error.ts';
import {
  type BoundPartitionSpec,
  findField,
  isPrimitive,
  type NestedField,
  partitionKey,
  type ScanDelete,
  type ScanFile,
  type ScanPlan,
  type Schema,
} from '../formats/iceberg/index.ts';
import type { Layout } from './layout.ts';
import { columnExpression, constantText, identityValues } from './projection.ts';
import { duckType, identifier, literal, pathLiteral } from './sql-text.ts';

export interface ViewInput {
  readonly plan: ScanPlan;
  /** All schemas of the table: an equality delete may name a column that was dropped since. */
  readonly schemas: readonly Schema[];
  /** Where DuckDB finds a file, by its URI. */
  readonly pathOf: (uri: string) => string;
  /** The table (uri, pos) that holds the rows named by deletion vectors; undefined when there are none. */
  readonly vectorTable: string | undefined;
  /** Files with rows in that table that no delete of the plan names. */
  readonly gone: ReadonlyMap<string, unknown>;
  /** Layouts of the files that need one (layout.ts), by URI. */
  readonly layouts: ReadonlyMap<string, Layout>;
  readonly specOf: (specId: number) => BoundPartitionSpec;
}

/** @throws FloeError `unsupported` for files or types that can't be read. */
export function viewQuery(input: ViewInput): string {
  const { files, schema } = input.plan;
  const columns = schema.fields.map(
    (field) => `${internal(field.id)} AS ${identifier(field.name)}`,
  );
  if (columns.length === 0) throw new FloeError('unsupported', 'the table has no columns');
  const isTouched = (one: ScanFile) => hasDeletes(one) || input.gone.has(one.file.filePath);
  const clean = files.filter((file) => !isTouched(file));
  const touched = files.filter(isTouched);
  const parts: string[] = [];
  if (clean.length > 0)
    parts.push(
      `SELECT ${columns.join(', ')} FROM ${scan(input, clean, { fields: schema.fields })}`,
    );
  if (touched.length > 0)
    parts.push(`SELECT ${columns.join(', ')} FROM ${withDeletes(input, touched)}`);
  return parts.length > 0 ? parts.join('\nUNION ALL\n') : emptyQuery(schema);
}

const hasDeletes = (file: ScanFile) =>
  file.positionDeletes.length > 0 || file.equalityDeletes.length > 0;

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
  /** With `__floe_file` and `__floe_row`, which deletes are found by. They cost a fifth of a fast scan. */
  readonly located?: boolean;
}

/** A relation of columns `c<id>`; a file that lacks one gives its default. */
function scan(input: ViewInput, files: readonly ScanFile[], shape: ScanShape): string {
  for (const { file } of files) {
    if (file.fileFormat !== 'PARQUET')
      throw new FloeError(
        'unsupported',
        `${file.fileFormat} data files can't be queried here: ${file.filePath}`,
      );
  }
  const groups = new Map<string, ScanFile[]>();
  for (const file of files) {
    const key = layoutKey(input, file);
    groups.set(key, [...(groups.get(key) ?? []), file]);
  }
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

function scanGroup(input: ViewInput, files: readonly ScanFile[], shape: ScanShape): string {
  const { fields, located = false } = shape;
  const paths = files.map(({ file }) => pathLiteral(input.pathOf(file.filePath))).join(', ');
  const name = located ? ", filename = '__floe_file'" : '';
  const [{ file }] = files as [ScanFile];
  const layout = input.layouts.get(file.filePath);
  if (layout === undefined) {
    const table = `read_parquet([${paths}], schema = ${schemaMap(fields)}, hive_partitioning = false${name})`;
    return located ? `(SELECT *, file_row_number AS __floe_row FROM ${table})` : table;
  }
  const values = identityValues(file, input.specOf(file.specId));
  const columns = fields.map(
    (field) => `${columnExpression(field, layout, values)} AS ${internal(field.id)}`,
  );
  if (located) columns.push('__floe_file', 'file_row_number AS __floe_row');
  return `(SELECT ${columns.join(', ')} FROM read_parquet([${paths}], hive_partitioning = false${name}))`;
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

function withDeletes(input: ViewInput, files: readonly ScanFile[]): string {
  const { schema } = input.plan;
  const groups = equalityGroups(files, input.schemas);
  const extra = groups
    .flatMap((group) => group.fields)
    .filter((field, index, all) => all.findIndex((other) => other.id === field.id) === index)
    .filter((field) => findField(schema, field.id) === undefined);
  const partitions = new PartitionNumbers();
  const rows = files.map(
    ({ file, sequenceNumber }) =>
      `(${literal(input.pathOf(file.filePath))}, ${literal(file.filePath)}, ${sequenceNumber}, ${partitions.of(file)})`,
  );
  const conditions = [
    ...positionConditions(input, files),
    ...groups.map((group) => equalityCondition(input, group, partitions)),
  ];
  return `(SELECT d.*, f.uri, f.seq, f.part FROM ${scan(input, files, { fields: [...schema.fields, ...extra], located: true })} d
    JOIN (VALUES ${rows.join(', ')}) f(path, uri, seq, part) ON d.__floe_file = f.path) t
  WHERE ${conditions.join('\n    AND ')}`;
}

function positionConditions(input: ViewInput, files: readonly ScanFile[]): string[] {
  const deletes = unique(files.flatMap((file) => file.positionDeletes));
  const listed = deletes.filter(({ file }) => file.fileFormat !== 'PUFFIN');
  const conditions: string[] = [];
  if (listed.length > 0) {
    conditions.push(
      `NOT EXISTS (SELECT 1 FROM ${deleteScan(input, listed, 'file_path, pos')} p WHERE p.file_path = t.uri AND p.pos = t.__floe_row AND p.seq >= t.seq)`,
    );
  }
  if (input.vectorTable !== undefined) {
    conditions.push(
      `NOT EXISTS (SELECT 1 FROM ${input.vectorTable} v WHERE v.uri = t.uri AND v.pos = t.__floe_row)`,
    );
  }
  return conditions.length > 0 ? conditions : ['true'];
}

/** Rows of position delete files, each with its file's sequence number. The two column names are the specification's. */
function deleteScan(input: ViewInput, deletes: readonly ScanDelete[], columns: string): string {
  const paths = deletes.map(({ file }) => pathLiteral(checkedPath(input, file)));
  const sequences = deletes.map(
    ({ file, sequenceNumber }) => `(${literal(input.pathOf(file.filePath))}, ${sequenceNumber})`,
  );
  return `(SELECT ${columns}, s.seq FROM read_parquet([${paths.join(', ')}], hive_partitioning = false, filename = '__floe_file') r
    JOIN (VALUES ${sequences.join(', ')}) s(path, seq) ON r.__floe_file = s.path)`;
}

function checkedPath(input: ViewInput, file: ScanDelete['file']): string {
  if (file.fileFormat !== 'PARQUET')
    throw new FloeError(
      'unsupported',
      `${file.fileFormat} delete files can't be read here: ${file.filePath}`,
    );
  return input.pathOf(file.filePath);
}

function unique(deletes: readonly ScanDelete[]): ScanDelete[] {
  return [
    ...new Map(
      deletes.map((one) => [`${one.file.filePath}#${one.file.contentOffset ?? ''}`, one]),
    ).values(),
  ];
}

/** Equality deletes over the same columns. */
interface EqualityGroup {
  readonly fields: readonly NestedField[];
  readonly deletes: readonly ScanDelete[];
}

function equalityGroups(files: readonly ScanFile[], schemas: readonly Schema[]): EqualityGroup[] {
  const groups = new Map<string, ScanDelete[]>();
  for (const one of unique(files.flatMap((file) => file.equalityDeletes))) {
    const key = [...(one.file.equalityIds ?? [])].sort((a, b) => a - b).join();
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups].map(([key, deletes]) => ({
    deletes,
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

/** A delete takes rows that are older than it, in its own partition or, when its spec has none, anywhere. Nulls are equal. */
function equalityCondition(
  input: ViewInput,
  { fields, deletes }: EqualityGroup,
  partitions: PartitionNumbers,
): string {
  const paths = deletes.map(({ file }) => pathLiteral(checkedPath(input, file)));
  const rows = deletes.map(({ file, sequenceNumber }) => {
    const part = file.partition.length === 0 ? 'NULL::INTEGER' : String(partitions.of(file));
    return `(${literal(input.pathOf(file.filePath))}, ${sequenceNumber}, ${part})`;
  });
  const keys = fields.map((field) => internal(field.id));
  const same = keys.map((key) => `e.${key} IS NOT DISTINCT FROM t.${key}`);
  return `NOT EXISTS (SELECT 1 FROM (
      SELECT ${keys.join(', ')}, s.part, max(s.seq) AS seq
      FROM read_parquet([${paths.join(', ')}], schema = ${schemaMap(fields)}, hive_partitioning = false, filename = '__floe_file') r
      JOIN (VALUES ${rows.join(', ')}) s(path, seq, part) ON r.__floe_file = s.path GROUP BY ALL) e
    WHERE ${same.join(' AND ')} AND e.seq > t.seq AND (e.part IS NULL OR e.part = t.part))`;
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

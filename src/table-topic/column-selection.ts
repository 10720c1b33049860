// Which fields of a source become columns, and under which name: the configs columns.include, .exclude and .rename.
// Fields are named by the source's own names, through structs, lists and maps alike. Pure.
// Not for: whether a name is free in the table (evolve.ts).
import { FloeError } from '../base/error.ts';
import {
  fieldPath,
  type ProposedField,
  type ProposedStruct,
  type ProposedType,
} from '../formats/arrow/proposed-schema.ts';
import { indexSchema } from '../formats/iceberg/schema.ts';
import type { IcebergType, Schema } from '../formats/iceberg/types.ts';
import { type ColumnPath, formatPath, parseColumns } from './column-list.ts';
import type { FieldMap } from './evolve.ts';

export interface RenameRule {
  readonly path: ColumnPath;
  readonly name: string;
}

export interface ColumnSelection {
  readonly include: readonly ColumnPath[];
  readonly exclude: readonly ColumnPath[];
  readonly rename: readonly RenameRule[];
}

/** What the configs say. */
export const columnSelection = (config: {
  readonly 'table.topic.columns.include': readonly ColumnPath[];
  readonly 'table.topic.columns.exclude': readonly ColumnPath[];
  readonly 'table.topic.columns.rename': readonly RenameRule[];
}): ColumnSelection => ({
  include: config['table.topic.columns.include'],
  exclude: config['table.topic.columns.exclude'],
  rename: config['table.topic.columns.rename'],
});

/** `[a: b, c.d: e]` → rules. @throws FloeError `invalid`. */
export function parseRenames(text: string): readonly RenameRule[] {
  const inner = text.trim().replace(/^\[([\s\S]*)\]$/, '$1');
  const seen = new Set<string>();
  return splitItems(inner).map((item) => {
    const parts = splitAt(item, ':');
    const [path, ...more] = parts.length === 2 ? parseColumns(parts[0]!) : [];
    const [name, ...rest] = parts.length === 2 ? parseColumns(parts[1]!) : [];
    if (path === undefined || name?.length !== 1 || more.length + rest.length > 0) {
      throw new FloeError('invalid', `"${item.trim()}" is not of the form column: new_name`);
    }
    const key = formatPath(path);
    if (seen.has(key)) throw new FloeError('invalid', `"${key}" is renamed twice`);
    seen.add(key);
    return { path, name: name[0]! };
  });
}

export function formatRenames(rules: readonly RenameRule[]): string {
  const items = rules.map(({ path, name }) => `${formatPath(path)}: ${formatPath([name])}`);
  return items.length === 0 ? '' : `[${items.join(', ')}]`;
}

const splitItems = (text: string) => splitAt(text, ',').filter((item) => item.trim() !== '');

/** Splits at a symbol outside backticks. */
function splitAt(text: string, symbol: string): string[] {
  const parts = [''];
  let quoted = false;
  for (const character of text) {
    if (character === '`') quoted = !quoted;
    if (character === symbol && !quoted) parts.push('');
    else parts[parts.length - 1] += character;
  }
  return parts;
}

/** A source path without what marks lists and maps: what a config can name. */
export const plainPath = (path: string) => path.replaceAll(/(?<!\\)(\[\]|\{(key|value)\})/g, '');

const sourcePath = (path: ColumnPath) => path.reduce(fieldPath, '');

/** Whether `path` is `ancestor` or below it. */
const isWithin = (path: string, ancestor: string) =>
  path === ancestor || path.startsWith(`${ancestor}.`);

/** True when no column is made of a source path: it is excluded, or neither included nor on the way to what is. */
export function ignoredPaths({
  include,
  exclude,
}: Omit<ColumnSelection, 'rename'>): ((path: string) => boolean) | undefined {
  if (include.length + exclude.length === 0) return undefined;
  const included = include.map(sourcePath);
  const excluded = exclude.map(sourcePath);
  return (path) => {
    // Columns that aren't the value's own (`:cdc_op`) go by their names, and belong to no list of what is included.
    const plain = plainPath(path).replace(/^:/, '_');
    if (excluded.some((one) => isWithin(plain, one))) return true;
    if (included.length === 0 || path.startsWith(':')) return false;
    return !included.some((one) => isWithin(plain, one) || isWithin(one, plain));
  };
}

/** The proposal as the config wants it; the very object when it wants nothing. */
export function selectColumns(
  proposed: ProposedStruct,
  selection: ColumnSelection,
): ProposedStruct {
  const ignored = ignoredPaths(selection) ?? (() => false);
  const names = new Map(selection.rename.map(({ path, name }) => [sourcePath(path), name]));
  if (names.size === 0 && ignoredPaths(selection) === undefined) return proposed;
  const struct = ({ fields }: ProposedStruct): ProposedStruct => ({
    type: 'struct',
    fields: fields.flatMap(select),
  });
  const select = (field: ProposedField): ProposedField[] => {
    if (ignored(field.path)) return [];
    const type = within(field.type);
    if (type === undefined) return [];
    return [{ ...field, name: names.get(plainPath(field.path)) ?? field.name, type }];
  };
  /** Undefined: nothing of it is left. */
  const within = (type: ProposedType): ProposedType | undefined => {
    if (typeof type === 'string') return type;
    if (type.type === 'struct') {
      const left = struct(type);
      return left.fields.length === 0 && type.fields.length > 0 ? undefined : left;
    }
    if (type.type === 'list') {
      const element = within(type.element);
      return element === undefined ? undefined : { ...type, element };
    }
    const value = within(type.value);
    return value === undefined ? undefined : { ...type, value };
  };
  return struct(proposed);
}

/**
 * The schema with columns that are there already under their wished names; the very schema when they all are.
 * @throws FloeError `invalid` when a name is another column's.
 */
export function renameColumns(
  schema: Schema,
  fields: FieldMap,
  rules: readonly RenameRule[],
): Schema {
  const wanted = new Map<number, string>();
  for (const { path, name } of rules) {
    const key = sourcePath(path);
    for (const [source, id] of fields) if (plainPath(source) === key) wanted.set(id, name);
  }
  const { byId } = indexSchema(schema);
  const differs = [...wanted].some(([id, name]) => {
    const field = byId.get(id);
    return field !== undefined && field.name !== name;
  });
  return differs ? { ...schema, fields: renamedFields(schema, wanted) } : schema;
}

function renamedFields(
  { fields }: Pick<Schema, 'fields'>,
  wanted: ReadonlyMap<number, string>,
): Schema['fields'] {
  const renamed = fields.map((field) => ({
    ...field,
    name: wanted.get(field.id) ?? field.name,
    type: renamedType(field.type, wanted),
  }));
  for (const [at, { id, name }] of renamed.entries()) {
    if (!wanted.has(id)) continue;
    const other = renamed.findIndex((one) => one.name.toLowerCase() === name.toLowerCase());
    const clash = other === at ? renamed.findLastIndex((one) => one.name === name) : other;
    if (clash === at) continue;
    throw new FloeError(
      'invalid',
      `table.topic.columns.rename: "${fields[at]!.name}" can’t become "${name}", which another column is called`,
    );
  }
  return renamed;
}

function renamedType(type: IcebergType, wanted: ReadonlyMap<number, string>): IcebergType {
  if (typeof type === 'string') return type;
  if (type.type === 'struct') return { ...type, fields: renamedFields(type, wanted) };
  if (type.type === 'list') return { ...type, element: renamedType(type.element, wanted) };
  return {
    ...type,
    key: renamedType(type.key, wanted),
    value: renamedType(type.value, wanted),
  };
}

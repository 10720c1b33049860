// Columns that the config declares for plain JSON, where inference would guess otherwise or too late:
// `[at timestamptz, price decimal(12, 2), tags list<string>, a.b long, raw json]`. Text to plain data, to a proposal, and
// back. `json` keeps whatever comes as its text. Not for: sources with a schema, whose types are the schema's.
import { FloeError } from '../base/error.ts';
import {
  elementPath,
  fieldPath,
  keyPath,
  type ProposedField,
  type ProposedStruct,
  type ProposedType,
  RESERVED_COLUMNS,
  valuePath,
} from '../formats/arrow/proposed-schema.ts';
import { parsePrimitive } from '../formats/iceberg/primitive.ts';
import type { PrimitiveTypeName } from '../formats/iceberg/types.ts';
import { MAX_COLUMN_DEPTH, variantPath } from '../formats/json/paths.ts';
import { type ColumnPath, formatPath, parseColumns } from './column-list.ts';

/** A primitive of Iceberg that JSON can fill, `json`, or a list or map of such. */
export type DeclaredType =
  | string
  | { readonly list: DeclaredType }
  | { readonly map: DeclaredType };

export interface DeclaredColumn {
  readonly path: ColumnPath;
  readonly type: DeclaredType;
}

const SCALARS: ReadonlySet<string> = new Set([
  'boolean',
  'int',
  'long',
  'float',
  'double',
  'string',
  'binary',
  'date',
  'timestamp',
  'timestamptz',
  'uuid',
]);

/** @throws FloeError `invalid`, naming what is wrong. */
export function parseDeclared(text: string): readonly DeclaredColumn[] {
  const inner = text.trim().replace(/^\[([\s\S]*)\]$/, '$1');
  const columns = splitItems(inner).map(parseItem);
  // Builds it once, so that a clash is refused when the config is set.
  declaredStruct(columns);
  return columns;
}

/** Splits at commas outside backticks and brackets. */
function splitItems(text: string): string[] {
  const items = [''];
  let depth = 0;
  let quoted = false;
  for (const character of text) {
    if (character === '`') quoted = !quoted;
    if (!quoted && (character === '<' || character === '(')) depth += 1;
    if (!quoted && (character === '>' || character === ')')) depth -= 1;
    if (character === ',' && !quoted && depth === 0) items.push('');
    else items[items.length - 1] += character;
  }
  return items.map((item) => item.trim()).filter((item) => item !== '');
}

/** A path, white space, a type: the path may have white space between backticks. */
const ITEM = /^((?:`[^`]*`|[^\s`])+)\s+(\S[\s\S]*)$/;

function parseItem(item: string): DeclaredColumn {
  const match = ITEM.exec(item);
  const [path, ...more] = match === null ? [] : parseColumns(match[1]!);
  if (match === null || path === undefined || more.length > 0) {
    throw new FloeError('invalid', `"${item}" is not of the form column type`);
  }
  if (path.length === 1 && RESERVED_COLUMNS.has(path[0]!.toLowerCase())) {
    throw new FloeError('invalid', `"${path[0]}" is a name of Floe’s own columns`);
  }
  return { path, type: parseType(match[2]!.trim(), 0) };
}

function parseType(text: string, depth: number): DeclaredType {
  if (depth > MAX_COLUMN_DEPTH) throw new FloeError('invalid', 'a type nested that deep');
  const lower = text.toLowerCase();
  const list = /^list\s*<([\s\S]*)>$/.exec(lower);
  if (list !== null) return { list: parseType(list[1]!.trim(), depth + 1) };
  const map = /^map\s*<\s*string\s*,([\s\S]*)>$/.exec(lower);
  if (map !== null) return { map: parseType(map[1]!.trim(), depth + 1) };
  if (SCALARS.has(lower) || (lower === 'json' && depth === 0)) return lower;
  const decimal = /^decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)$/.exec(lower);
  if (decimal !== null) {
    const name = `decimal(${decimal[1]}, ${decimal[2]})`;
    parsePrimitive(name);
    return name;
  }
  throw new FloeError(
    'invalid',
    `"${text}" is no type that JSON fills: boolean, int, long, float, double, decimal(p, s), string, binary (base64), date, timestamp, timestamptz, uuid, json, list<T> or map<string, T>`,
  );
}

export function formatDeclared(columns: readonly DeclaredColumn[]): string {
  const items = columns.map(({ path, type }) => `${formatPath(path)} ${formatType(type)}`);
  return items.length === 0 ? '' : `[${items.join(', ')}]`;
}

function formatType(type: DeclaredType): string {
  if (typeof type === 'string') return type;
  return 'list' in type ? `list<${formatType(type.list)}>` : `map<string, ${formatType(type.map)}>`;
}

/** The declared columns as a proposal, structs around nested ones. @throws FloeError `invalid` when two clash. */
export function declaredStruct(columns: readonly DeclaredColumn[]): ProposedStruct {
  return { type: 'struct', fields: fieldsOf(columns, '', 0) };
}

function fieldsOf(
  columns: readonly DeclaredColumn[],
  parent: string,
  depth: number,
): ProposedField[] {
  const groups = new Map<string, DeclaredColumn[]>();
  for (const column of columns) {
    const name = column.path[depth]!;
    groups.set(name, [...(groups.get(name) ?? []), column]);
  }
  return [...groups].map(([name, group]) => {
    const path = fieldPath(parent, name);
    const leaf = group.find((column) => column.path.length === depth + 1);
    if (leaf === undefined) {
      const fields = fieldsOf(group, path, depth + 1);
      return { name, aliases: [], path, type: { type: 'struct', fields } };
    }
    if (group.length > 1) {
      const full = formatPath(leaf.path);
      throw new FloeError('invalid', `"${full}" is declared twice, or as a struct and as a column`);
    }
    if (leaf.type === 'json') {
      return { name, aliases: [], path: variantPath(path, 'json'), type: 'string' };
    }
    return { name, aliases: [], path, type: proposedType(leaf.type, path) };
  });
}

function proposedType(type: DeclaredType, path: string): ProposedType {
  if (typeof type === 'string') return type as PrimitiveTypeName;
  if ('list' in type) {
    const inside = elementPath(path);
    return { type: 'list', elementPath: inside, element: proposedType(type.list, inside) };
  }
  const inside = valuePath(path);
  return {
    type: 'map',
    keyPath: keyPath(path),
    key: 'string',
    valuePath: inside,
    value: proposedType(type.map, inside),
  };
}

// The columns bound to JSON paths, as a tree of the fields that a record may have.
import { assert } from '../../base/assert.ts';
import type { Column } from '../arrow/column.ts';
import type { Bindings } from '../arrow/proposed-schema.ts';
import type { TableColumns } from '../arrow/table-columns.ts';
import type { JsonKind } from './paths.ts';

/** One place in a record: its column, columns for values of other types, and what is inside. */
export interface PathNode {
  readonly path: string;
  column: Column | undefined;
  readonly variants: Map<JsonKind, Column>;
  readonly fields: Map<string, PathNode>;
  element: PathNode | undefined;
  key: PathNode | undefined;
  value: PathNode | undefined;
}

const newNode = (path: string): PathNode => ({
  path,
  column: undefined,
  variants: new Map(),
  fields: new Map(),
  element: undefined,
  key: undefined,
  value: undefined,
});

/** The tree of `bindings` over `columns`; paths of Floe's own columns are left aside. */
export function pathTree(columns: TableColumns, bindings: Bindings): PathNode {
  const root = newNode('');
  for (const [path, id] of bindings) {
    if (path.startsWith(':')) continue;
    const column = columns.byId(id);
    assert(column !== undefined, `T8: field id ${id} bound to "${path}" is in the table's schema`);
    place(root, path, column);
  }
  return root;
}

/** The node of a field of the root, by its path. */
export function nodeAt(root: PathNode, path: string): PathNode | undefined {
  return [...root.fields.values()].find((node) => node.path === path);
}

/** A step of a path: a field's name with its escapes, an element, a map's key or value, or a variant at the end. */
const STEP = /\.?((?:[^\\.[{]|\\[\\.[{@:])+)|(\[\])|\{(key|value)\}|\\([a-z]+)$/gy;

function place(root: PathNode, path: string, column: Column): void {
  let node = root;
  STEP.lastIndex = 0;
  while (STEP.lastIndex < path.length) {
    const step = STEP.exec(path);
    assert(step !== null, `"${path}" is a source path`);
    const here = path.slice(0, STEP.lastIndex);
    if (step[4] !== undefined) {
      node.variants.set(step[4] as JsonKind, column);
      return;
    }
    if (step[1] !== undefined) node = child(node.fields, fieldName(step[1]), here);
    else if (step[2] !== undefined) node = node.element ??= newNode(here);
    else if (step[3] === 'key') node = node.key ??= newNode(here);
    else node = node.value ??= newNode(here);
  }
  node.column = column;
}

/** The inverse of `fieldPath`'s escapes. */
const fieldName = (escaped: string) =>
  escaped.replace(/\\(.)/g, (_, character: string) => (character === '@' ? '' : character));

function child(fields: Map<string, PathNode>, name: string, path: string): PathNode {
  const found = fields.get(name);
  if (found !== undefined) return found;
  const node = newNode(path);
  fields.set(name, node);
  return node;
}

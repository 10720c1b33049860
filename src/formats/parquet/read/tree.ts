// The schema of a Parquet file as a tree with levels and field ids: what columns of a table are found in.
// Source: parquet-format, "Nested Encoding", LogicalTypes.md (lists of two and three levels).
import type { SchemaElement } from 'hyparquet';
import { FloeError } from '../../../base/error.ts';
import type { MappedField, NameMapping } from '../../iceberg/projection.ts';

/** A column of the file, or a part of one. */
export interface FileNode {
  readonly element: SchemaElement;
  /** The file's own, or by the table's name mapping where the file has none at all. */
  readonly fieldId: number | undefined;
  readonly children: readonly FileNode[];
  /** Definition level from which on this node is there. */
  readonly definition: number;
  readonly repetition: number;
  /** Position of the first leaf at or below it among all leaves of the file. */
  readonly firstLeaf: number;
}

/** Levels are bytes here. */
const MAX_LEVEL = 255;

/**
 * The top-level columns.
 * @param mapping the ids of a file that has none
 * @throws FloeError `corrupt`, `unsupported`.
 */
export function fileTree(
  elements: readonly SchemaElement[],
  mapping: NameMapping = [],
): readonly FileNode[] {
  let at = 0;
  let leaves = 0;
  const take = (above: { readonly definition: number; readonly repetition: number }): FileNode => {
    const element = elements[at++];
    if (element === undefined) throw new FloeError('corrupt', 'Parquet: a schema that ends early');
    const repeated = element.repetition_type === 'REPEATED';
    const definition = above.definition + (element.repetition_type === 'REQUIRED' ? 0 : 1);
    const repetition = above.repetition + (repeated ? 1 : 0);
    if (definition > MAX_LEVEL)
      throw new FloeError('unsupported', `Parquet: more than ${MAX_LEVEL} levels`);
    const firstLeaf = leaves;
    const count = element.num_children ?? 0;
    if (count === 0) leaves += 1;
    if (count > elements.length)
      throw new FloeError('corrupt', 'Parquet: a schema that ends early');
    const children = Array.from({ length: count }, () => take({ definition, repetition }));
    return { element, fieldId: element.field_id, children, definition, repetition, firstLeaf };
  };
  const root = elements[at++];
  if (root === undefined) throw new FloeError('corrupt', 'Parquet: a file without a schema');
  const above = { definition: 0, repetition: 0 };
  const columns = Array.from({ length: root.num_children ?? 0 }, () => take(above));
  const hasIds = elements.some((element) => element.field_id !== undefined);
  return hasIds || mapping.length === 0 ? columns : withIds(columns, mapping);
}

/** Ids by name, at every depth. */
function withIds(nodes: readonly FileNode[], mapping: NameMapping): readonly FileNode[] {
  const byName = new Map(mapping.flatMap((field) => field.names.map((name) => [name, field])));
  return nodes.map((node) => withId(node, byName.get(node.element.name)));
}

function withId(node: FileNode, field: MappedField | undefined): FileNode {
  if (field === undefined) return node;
  const children = childrenWithIds(node, field.fields ?? []);
  return { ...node, fieldId: field['field-id'], children };
}

/** Parts of lists and maps are known by their place: writers don't agree on their names. */
function childrenWithIds(node: FileNode, fields: NameMapping): readonly FileNode[] {
  const part = (name: string) => fields.find(({ names }) => names.includes(name));
  const list = part('element') === undefined ? undefined : listNodes(node);
  if (list !== undefined) {
    const { repeated, element } = list;
    const child = withId(element, part('element'));
    return [repeated === element ? child : { ...repeated, children: [child] }];
  }
  const map = part('key') === undefined ? undefined : mapNodes(node);
  if (map === undefined) return withIds(node.children, fields);
  const entry = [withId(map.key, part('key')), withId(map.value, part('value'))];
  return [{ ...map.repeated, children: entry }];
}

/** The repeated node of a list and the node of its elements (the same one in lists of two levels). */
export function listNodes(node: FileNode): { repeated: FileNode; element: FileNode } | undefined {
  const repeated = node.children[0];
  if (repeated?.element.repetition_type !== 'REPEATED') return undefined;
  const [child] = repeated.children;
  const wrapped =
    repeated.children.length === 1 &&
    child !== undefined &&
    repeated.element.name !== 'array' &&
    repeated.element.name !== `${node.element.name}_tuple`;
  return { repeated, element: wrapped ? child : repeated };
}

/** The repeated node of a map with the nodes of keys and values. */
export function mapNodes(
  node: FileNode,
): { repeated: FileNode; key: FileNode; value: FileNode } | undefined {
  const repeated = node.children[0];
  const [key, value] = repeated?.children ?? [];
  if (repeated?.element.repetition_type !== 'REPEATED' || key === undefined || value === undefined)
    return undefined;
  return { repeated, key, value };
}

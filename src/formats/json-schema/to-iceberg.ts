// The table that a JSON Schema asks for, from its shape. All columns are optional; what is declared nowhere lands in
// `_rest` where the schema allows it.
import { FloeError } from '../../base/error.ts';
import {
  ColumnNames,
  elementPath,
  fieldPath,
  keyPath,
  type ProposedField,
  type ProposedStruct,
  type ProposedType,
  valuePath,
} from '../arrow/proposed-schema.ts';
import { REST_PATH } from '../json/paths.ts';
import type { Shape } from './shapes.ts';

/** Where undeclared properties go, as JSON text by their paths. */
export const REST_COLUMN = '_rest';

/** The columns for values of `shape`, an object. @throws FloeError `invalid` when there are none. */
export function shapeToProposed(shape: Extract<Shape, { kind: 'struct' }>): ProposedStruct {
  const names = new ColumnNames(true);
  const fields = structFields(shape, '', names);
  if (isOpen(shape)) {
    fields.push({ name: REST_COLUMN, aliases: [], path: REST_PATH, type: 'string' });
  }
  if (fields.length > 0) return { type: 'struct', fields };
  throw new FloeError('invalid', 'the JSON schema has no property that makes a column');
}

/** Whether anything undeclared may come, at any level. */
export function isOpen(shape: Shape): boolean {
  switch (shape.kind) {
    case 'struct':
      return shape.open || [...shape.fields.values()].some(isOpen);
    case 'list':
      return isOpen(shape.element);
    case 'map':
      return isOpen(shape.value);
    default:
      return false;
  }
}

function structFields(
  shape: Extract<Shape, { kind: 'struct' }>,
  path: string,
  names: ColumnNames,
): ProposedField[] {
  return [...shape.fields].map(([property, inner]) => {
    const own = fieldPath(path, property);
    const doc = 'doc' in inner ? inner.doc : undefined;
    return {
      name: names.take(property),
      aliases: [],
      path: own,
      type: shapeType(inner, own),
      ...(doc === undefined ? {} : { doc }),
    };
  });
}

/** The type of a column for values of `shape`, which isn't `none`. */
export function shapeType(shape: Shape, path: string): ProposedType {
  switch (shape.kind) {
    case 'struct':
      return { type: 'struct', fields: structFields(shape, path, new ColumnNames(false)) };
    case 'list': {
      const own = elementPath(path);
      return { type: 'list', elementPath: own, element: shapeType(shape.element, own) };
    }
    case 'map': {
      const own = valuePath(path);
      const value = shapeType(shape.value, own);
      return { type: 'map', keyPath: keyPath(path), key: 'string', valuePath: own, value };
    }
    case 'scalar':
      return shape.type;
    default:
      return 'string';
  }
}

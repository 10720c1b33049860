// The source paths of plain JSON beyond names: where one field has columns of several types.
// A field's first column has the field's own path. Values of another type go to a variant, `path\type`; names are
// escaped in paths, so a backslash before a letter never comes from a name.

/** Kinds of values, by how they are written. `number` is one that neither long nor double holds, kept as text. */
export type JsonKind =
  | 'boolean'
  | 'long'
  | 'double'
  | 'number'
  | 'string'
  | 'struct'
  | 'list'
  | 'json';

/** The path of a field's column for values of `kind`. `json` takes anything as JSON text. */
export const variantPath = (path: string, kind: JsonKind) => `${path}\\${kind}`;

/** The path of `_rest`. */
export const REST_PATH = '\\rest';
/** The path of `_kafka_value` for roots that are no objects, as JSON text. */
export const ROOT_TEXT_PATH = variantPath('', 'json');

/** Levels of objects and arrays that make columns; what lies deeper goes to `_rest`. */
export const MAX_COLUMN_DEPTH = 32;

/** Columns (leaves) that inference makes, at most: `json.max.columns`. */
export const DEFAULT_MAX_COLUMNS = 1000;

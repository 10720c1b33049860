// Decodes JSON by its schema: the streaming decoder of formats/json, told by the schema's shape how each place is read.
// What the schema doesn't declare goes to `_rest` where it is open, else the record is refused; a value that isn't what
// its place declares is a reason that names the place.
import type { BytesColumn } from '../arrow/byte-columns.ts';
import { type Bindings, elementPath, fieldPath, valuePath } from '../arrow/proposed-schema.ts';
import type { TableColumns } from '../arrow/table-columns.ts';
import { compileJsonDecoder, type JsonDecoder, UNFIT } from '../json/decoder.ts';
import type { Shape } from './shapes.ts';
import { readingSinks } from './sinks.ts';

export interface JsonSchemaDecoder {
  /** As `JsonDecoder.decode`, with reasons of its own. */
  decode(bytes: Uint8Array, start: number, end: number): string | undefined;
}

export interface JsonSchemaSource {
  readonly shape: Shape;
  /** Set: whole values go into the column bound to this path. Missing: the properties are the table's. */
  readonly path?: string;
  /** Paths whose values are left out of the table. */
  readonly ignores?: (path: string) => boolean;
}

export function compileJsonSchemaDecoder(
  { shape, path, ignores }: JsonSchemaSource,
  columns: TableColumns,
  bindings: Bindings,
): JsonSchemaDecoder {
  const shapes = new Map<string, Shape>();
  noteShapes(shape, path ?? '', shapes);
  const decoder = compileJsonDecoder(columns, bindings, {
    // Whatever has no column was declared nowhere.
    maxColumns: 0,
    ...(path === undefined ? {} : { whole: path }),
    ...(ignores === undefined ? {} : { ignores }),
    sinks(at, column) {
      const own = shapes.get(at);
      if (own?.kind === 'json') return { json: column as BytesColumn };
      return own?.kind === 'scalar' ? readingSinks(own.reading, column) : undefined;
    },
  });
  return {
    decode(bytes, start, end) {
      const reason = decoder.decode(bytes, start, end);
      return reason === UNFIT ? misfitText(decoder, shapes) : reason;
    },
  };
}

/** All places below one, by path. */
function noteShapes(shape: Shape, path: string, shapes: Map<string, Shape>): void {
  shapes.set(path, shape);
  if (shape.kind === 'list') noteShapes(shape.element, elementPath(path), shapes);
  else if (shape.kind === 'map') noteShapes(shape.value, valuePath(path), shapes);
  else if (shape.kind === 'struct') {
    for (const [name, inner] of shape.fields) noteShapes(inner, fieldPath(path, name), shapes);
  }
}

function misfitText({ misfits }: JsonDecoder, shapes: ReadonlyMap<string, Shape>): string {
  const [first] = misfits;
  if (first === undefined) {
    return 'a property is declared nowhere in the schema, which allows no others';
  }
  const at = first.lastIndexOf('\\');
  const path = first.slice(0, at);
  const found = first.slice(at + 1);
  const shape = shapes.get(path);
  const declared = shape === undefined ? 'something else' : shapeText(shape);
  return `the value of "${path}" isn't ${declared} as the schema says${
    shape?.kind === 'list' || shape?.kind === 'map'
      ? ', or one inside it isn’t'
      : ` (found: ${found})`
  }`;
}

function shapeText(shape: Shape): string {
  if (shape.kind === 'scalar') return `a valid ${shape.type}`;
  return shape.kind === 'struct' ? 'an object' : `a ${shape.kind}`;
}

// Registered JSON Schemas as sources of columns: an object's properties lifted to top level, or the whole value kept in
// one column, as what is no object always is.
import { FloeError } from '../../base/error.ts';
import {
  type Bindings,
  fieldPath,
  isNumbered,
  VALUE_COLUMN,
} from '../../formats/arrow/proposed-schema.ts';
import { REST_PATH } from '../../formats/json/paths.ts';
import { compileJsonSchemaDecoder } from '../../formats/json-schema/decoder.ts';
import { jsonSchemaShape } from '../../formats/json-schema/shape.ts';
import type { Shape } from '../../formats/json-schema/shapes.ts';
import {
  isOpen,
  REST_COLUMN,
  shapeToProposed,
  shapeType,
} from '../../formats/json-schema/to-iceberg.ts';
import { systemPath } from '../system-columns.ts';
import {
  noMessages,
  type Place,
  type SchemaText,
  type SourceFormat,
  type TypeOptions,
} from './source.ts';

export const jsonSchemaFormat: SourceFormat = {
  hasMessages: false,
  messageAt: noMessages,
  propose(text, place, options) {
    const shape = shapeOf(text, options);
    const path = wholePath(shape, place);
    if (path === undefined) return shapeToProposed(shape as Extract<Shape, { kind: 'struct' }>);
    if (shape.kind === 'none') throw new FloeError('invalid', 'the JSON schema allows no value');
    const name = place === 'key' ? '_kafka_key' : VALUE_COLUMN;
    const whole = { name, aliases: [], path, type: shapeType(shape, path) };
    const rest = { name: REST_COLUMN, aliases: [], path: REST_PATH, type: 'string' } as const;
    const open = place !== 'key' && isOpen(shape);
    return { type: 'struct', fields: open ? [whole, rest] : [whole] };
  },
  compile({ text, place, bindings }, columns) {
    // How a time of day is stored is the column's type by now.
    const shape = shapeOf(text, { time: 'string' });
    const path = wholePath(shape, place);
    const source = path === undefined ? { shape } : { shape, path };
    return compileJsonSchemaDecoder(source, columns, jsonOnly(bindings));
  },
  messages(text) {
    const title = (JSON.parse(text.schema) as Record<string, unknown>)['title'];
    return typeof title === 'string' ? [title] : [];
  },
};

const shapeOf = ({ schema, references }: SchemaText, { time }: Pick<TypeOptions, 'time'>): Shape =>
  jsonSchemaShape(schema, references, { time });

/** Where a whole value goes; undefined when its properties are the table's. */
function wholePath(shape: Shape, place: Place): string | undefined {
  if (place === 'debezium') {
    throw new FloeError(
      'invalid',
      'flatten_debezium reads envelopes in Avro, or in JSON by table.topic.convert.value.type=json',
    );
  }
  if (place === 'key') return fieldPath('', systemPath('key'));
  return place === 'flattened' && shape.kind === 'struct' ? undefined : VALUE_COLUMN;
}

const jsonOnly = (bindings: Bindings): Bindings =>
  new Map([...bindings].filter(([path]) => !isNumbered(path)));

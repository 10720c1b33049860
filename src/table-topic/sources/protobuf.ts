// Registered Protobuf schemas as sources of columns: one message of a file, its fields lifted to top level or the
// whole of it kept in one column.
import { FloeError } from '../../base/error.ts';
import { fieldPath, VALUE_COLUMN } from '../../formats/arrow/proposed-schema.ts';
import { compileProtobufDecoder } from '../../formats/protobuf/decoder.ts';
import {
  type IndexedMessage,
  type ProtoMessage,
  type ProtoSchema,
  parseProtobuf,
} from '../../formats/protobuf/schema.ts';
import { protobufToProposed, protobufToType } from '../../formats/protobuf/to-iceberg.ts';
import {
  compileProtobufEnvelope,
  proposedProtobufEnvelope,
  protobufEnvelope,
} from '../debezium/protobuf-envelope.ts';
import { systemPath } from '../system-columns.ts';
import type { Place, SchemaText, SourceFormat } from './source.ts';

export const protobufFormat: SourceFormat = {
  hasMessages: true,
  propose(text, place, { nanos }) {
    const { message } = find(text);
    if (place === 'debezium') return proposedProtobufEnvelope(protobufEnvelope(message), { nanos });
    const path = wholePath(place);
    if (path === undefined) return protobufToProposed(message, { nanos });
    const name = place === 'value' ? VALUE_COLUMN : '_kafka_key';
    const type = protobufToType(message, path, { nanos });
    return { type: 'struct', fields: [{ name, aliases: [], path, type }] };
  },
  compile({ text, place, bindings }, columns, change) {
    const { schema, message } = find(text);
    if (place === 'debezium') {
      const target = { columns, bindings, change };
      return compileProtobufEnvelope(protobufEnvelope(message), schema.find, target);
    }
    const path = wholePath(place);
    const source = { message, find: schema.find, ...(path === undefined ? {} : { path }) };
    return compileProtobufDecoder(source, columns, bindings);
  },
  messages: (text) => parse(text).messages.map(({ message }) => message.name),
  messageAt(text, indexes) {
    let nested = parse(text).messages;
    let found: IndexedMessage | undefined;
    for (const index of indexes.split('.')) {
      found = nested[Number(index)];
      if (found === undefined) break;
      nested = found.nested;
    }
    if (found !== undefined) return found.message.name;
    throw new FloeError('invalid', `the schema has no message at index ${indexes}`);
  },
};

/** Schemas parsed last: a file of many messages is asked for once for each of them. */
const parsed = new Map<string, ProtoSchema>();
const KEPT = 8;

function parse({ schema, references }: SchemaText): ProtoSchema {
  const key = JSON.stringify([schema, references]);
  const known = parsed.get(key);
  parsed.delete(key);
  const found = known ?? parseProtobuf(schema, references);
  parsed.set(key, found);
  if (parsed.size > KEPT) parsed.delete(parsed.keys().next().value!);
  return found;
}

function find(text: SchemaText): { readonly schema: ProtoSchema; readonly message: ProtoMessage } {
  const schema = parse(text);
  const name = text.message;
  const message = name === undefined ? schema.messages[0]?.message : schema.find(name);
  if (message !== undefined) return { schema, message };
  const what = name === undefined ? 'no message' : `no message "${name}"`;
  throw new FloeError('invalid', `the Protobuf schema has ${what}`);
}

/** Where a whole message goes; undefined when its fields are the table's. */
function wholePath(place: Exclude<Place, 'debezium'>): string | undefined {
  switch (place) {
    case 'flattened':
      return undefined;
    case 'value':
      return VALUE_COLUMN;
    case 'key':
      return fieldPath('', systemPath('key'));
  }
}

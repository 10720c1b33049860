// Registered Avro schemas as sources of columns: whole records lifted to top level, values or keys kept in one column.
import { type ProposedStruct, VALUE_COLUMN } from '../../formats/arrow/proposed-schema.ts';
import { compileAvroDecoder } from '../../formats/avro/decoder.ts';
import { type AvroSchema, parseAvroSchema } from '../../formats/avro/schema.ts';
import { avroToProposed } from '../../formats/avro/to-iceberg.ts';
import { compileAvroEnvelope } from '../debezium/avro-envelope.ts';
import { envelopeOf, proposedEnvelope } from '../debezium/envelope.ts';
import { systemPath } from '../system-columns.ts';
import { noMessages, type Place, type SchemaText, type SourceFormat } from './source.ts';

/**
 * A schema for the decoder. Kept whole it becomes the one field of a record around it, which has the same encoding.
 * @throws FloeError `invalid`.
 */
function placedSchema({ schema, references }: SchemaText, place: Place): AvroSchema {
  const parsed = parseAvroSchema(
    schema,
    references.map((reference) => reference.schema),
  );
  if (place === 'flattened' || place === 'debezium') return parsed;
  const name = place === 'value' ? VALUE_COLUMN : systemPath('key');
  return {
    kind: 'record',
    name: 'floe.whole',
    aliases: [],
    fields: [{ name, aliases: [], type: parsed }],
  };
}

export const avroFormat: SourceFormat = {
  hasMessages: false,
  messageAt: noMessages,
  messages(text) {
    const schema = placedSchema(text, 'flattened');
    return 'name' in schema ? [schema.name] : [];
  },
  propose(text, place, options) {
    const schema = placedSchema(text, place);
    if (place === 'debezium') return proposedEnvelope(envelopeOf(schema), options);
    const proposed = avroToProposed(schema, options);
    return place === 'flattened' ? proposed : ownName(proposed, place);
  },
  compile({ text, place, bindings }, columns, change) {
    const schema = placedSchema(text, place);
    if (place === 'debezium') {
      return compileAvroEnvelope(envelopeOf(schema), { columns, bindings, change });
    }
    return compileAvroDecoder(schema, columns, bindings);
  },
};

/** The name is one of ours, so the rule that moves users' fields out of the way doesn't apply. */
function ownName(proposed: ProposedStruct, place: 'value' | 'key'): ProposedStruct {
  const name = place === 'value' ? VALUE_COLUMN : '_kafka_key';
  return { ...proposed, fields: proposed.fields.map((field) => ({ ...field, name })) };
}

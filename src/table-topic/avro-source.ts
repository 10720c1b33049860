// Registered Avro schemas as sources of columns: whole records lifted to top level, values or keys kept in one column.
import { type ProposedStruct, VALUE_COLUMN } from '../formats/arrow/proposed-schema.ts';
import { type AvroSchema, parseAvroSchema } from '../formats/avro/schema.ts';
import {
  avroToProposed,
  DEFAULT_TYPE_OPTIONS,
  type TypeOptions,
} from '../formats/avro/to-iceberg.ts';
import { systemPath } from './system-columns.ts';

/** Where the decoded thing lands. */
export type AvroPlace = 'flattened' | 'value' | 'key';

export interface AvroText {
  readonly schema: string;
  /** Texts of the schemas it refers to, in an order in which each knows those it needs. */
  readonly references: readonly string[];
}

/**
 * A schema for the decoder. Kept whole it becomes the one field of a record around it, which has the same encoding.
 * @throws FloeError `invalid`.
 */
export function placedSchema({ schema, references }: AvroText, place: AvroPlace): AvroSchema {
  const parsed = parseAvroSchema(schema, references);
  if (place === 'flattened') return parsed;
  const name = place === 'value' ? VALUE_COLUMN : systemPath('key');
  return {
    kind: 'record',
    name: 'floe.whole',
    aliases: [],
    fields: [{ name, aliases: [], type: parsed }],
  };
}

/** The columns that a schema would like at its place. @throws FloeError `invalid`. */
export function proposedColumns(
  text: AvroText,
  place: AvroPlace,
  options: TypeOptions = DEFAULT_TYPE_OPTIONS,
): ProposedStruct {
  const proposed = avroToProposed(placedSchema(text, place), options);
  if (place === 'flattened') return proposed;
  // The name is one of ours, so the rule that moves users' fields out of the way doesn't apply.
  const name = place === 'value' ? VALUE_COLUMN : '_kafka_key';
  return { ...proposed, fields: proposed.fields.map((field) => ({ ...field, name })) };
}

// Debezium's change events as schemas: which schema is an envelope, and the columns that it makes. The row image
// (`before` and `after` are one record) is lifted to top level; op, time and source follow as `_cdc_*` columns.
// Schemas come as Avro trees, whether registered (sources/avro.ts) or sent along in JSON (connect-schema.ts); those in
// Protobuf are protobuf-envelope.ts's.
// Source: Debezium reference, "Data change events".
// Not for: reading values (avro-envelope.ts, json-envelope.ts).
import { FloeError } from '../../base/error.ts';
import type {
  ProposedField,
  ProposedStruct,
  ProposedType,
} from '../../formats/arrow/proposed-schema.ts';
import type { AvroField, AvroRecord, AvroSchema } from '../../formats/avro/schema.ts';
import {
  avroColumnType,
  avroToProposed,
  rootRecord,
  type TypeOptions,
} from '../../formats/avro/to-iceberg.ts';

/** Source paths of the columns that are no image's; a value's paths never start with a colon. */
export const CDC_PATHS = { op: ':cdc_op', ts: ':cdc_ts', source: ':cdc_source' } as const;

/** An envelope's schema, taken apart. */
export interface Envelope {
  /** In the order in which the parts are written. */
  readonly fields: readonly AvroField[];
  /** One row of the database's table. */
  readonly image: AvroRecord;
  readonly source: AvroSchema | undefined;
}

/** What a schema on a Debezium topic is. `other`: Debezium's own word about the stream, no change of a row. */
export type EventSchema =
  | { readonly kind: 'envelope'; readonly envelope: Envelope }
  | { readonly kind: 'other'; readonly what: string };

/** Last parts of the names of what Debezium sends beside changes. */
const OTHER_EVENTS: Readonly<Record<string, string>> = {
  Heartbeat: 'a heartbeat',
  TransactionMetadataValue: 'transaction metadata',
  SchemaChangeValue: 'a schema change',
  MessageValue: 'a message of the database’s log',
};

/** What Debezium sends under a schema of this name beside changes; undefined for changes. */
export const otherEvent = (name: string): string | undefined =>
  OTHER_EVENTS[name.replace(/^.*\./, '')];

/** @throws FloeError `invalid` for a schema that isn't Debezium's. */
export function eventSchema(schema: AvroSchema): EventSchema {
  const record = rootRecord(schema);
  if (record === undefined) throw notAnEnvelope('it is no record');
  const what = otherEvent(record.name);
  if (what !== undefined) return { kind: 'other', what };
  const field = (name: string) => record.fields.find((one) => one.name === name)?.type;
  const op = field('op');
  const after = field('after');
  if (op === undefined || after === undefined) throw notAnEnvelope('it lacks "op" or "after"');
  if (op.kind !== 'string') throw notAnEnvelope('"op" is no string');
  const image = rootRecord(after);
  if (image === undefined) {
    throw notAnEnvelope('"after" is no record: documents are served as JSON or with flatten');
  }
  const before = field('before');
  if (before !== undefined && rootRecord(before) !== image) {
    throw notAnEnvelope('"before" and "after" are of two types');
  }
  return { kind: 'envelope', envelope: { fields: record.fields, image, source: field('source') } };
}

/** @throws FloeError `invalid`; with `details.reason` `no_row` for what Debezium sends beside changes. */
export function envelopeOf(schema: AvroSchema): Envelope {
  const event = eventSchema(schema);
  if (event.kind === 'envelope') return event.envelope;
  throw new FloeError('invalid', `${event.what}, no change of a row`, {
    details: { reason: 'no_row' },
  });
}

export function notAnEnvelope(why: string): FloeError {
  return new FloeError('invalid', `no Debezium envelope: ${why}`);
}

/** The columns of an envelope: the image's, then `_cdc_*`. @throws FloeError `invalid`. */
export function proposedEnvelope(
  { image, source }: Envelope,
  options: TypeOptions,
): ProposedStruct {
  const { fields } = avroToProposed(image, options);
  const block =
    source === undefined ? undefined : avroColumnType(source, CDC_PATHS.source, options);
  return { type: 'struct', fields: [...fields, ...cdcFields(block)] };
}

/** `_cdc_op`, `_cdc_ts` and, when its type is known, `_cdc_source`. */
export function cdcFields(source: ProposedType | undefined): ProposedField[] {
  const fields: ProposedField[] = [
    { name: '_cdc_op', aliases: [], path: CDC_PATHS.op, type: 'string' },
    { name: '_cdc_ts', aliases: [], path: CDC_PATHS.ts, type: 'timestamptz' },
  ];
  if (source !== undefined) {
    fields.push({ name: '_cdc_source', aliases: [], path: CDC_PATHS.source, type: source });
  }
  return fields;
}

// Configs that say how keys and values become columns: converters, transforms, schema selection, types.
import { bool, int, oneOf, type Settings } from '../../base/settings.ts';
import type { Refusals } from './theme.ts';

export const configs = {
  'table.topic.convert.value.type': oneOf(['by_schema_id', 'json', 'string', 'raw'], {
    default: 'by_schema_id',
    aliases: ['automq.table.topic.convert.value.type'],
    doc: 'How a value becomes columns: by the schema whose id precedes it (magic byte 0 and four bytes), as JSON whose columns are inferred, as text, or as bytes. Must be chosen unless the subject <topic>-value is registered.',
  }),
  'table.topic.convert.key.type': oneOf(['raw', 'string', 'by_schema_id', 'json'], {
    default: 'raw',
    aliases: ['automq.table.topic.convert.key.type'],
    doc: 'How _kafka_key is stored: bytes, text, by schema id as columns of a struct, or checked JSON text.',
  }),
  'table.topic.transform.value.type': oneOf(['flatten', 'none', 'flatten_debezium'], {
    default: 'flatten',
    aliases: ['automq.table.topic.transform.value.type'],
    doc: 'flatten lifts the fields of a record value to top-level columns; none keeps it whole in _kafka_value; flatten_debezium lifts the row image of Debezium’s envelopes and adds _cdc_op, _cdc_ts and _cdc_source (by_schema_id with Avro, or json). raw and string values are always in _kafka_value.',
  }),
  'table.topic.types.time': oneOf(['string', 'long', 'time'], {
    default: 'string',
    doc: 'How a time of day is stored: text HH:MM:SS.ffffff, microseconds as long, or Iceberg time, which makes Spark refuse the whole table.',
  }),
  'table.topic.json.max.columns': int({
    default: 1_000,
    min: 1,
    max: 10_000,
    doc: 'Columns that JSON values may create, nested ones counted; further properties land in _rest as JSON text.',
  }),
  'table.topic.json.infer.timestamps': bool({
    default: false,
    doc: 'Take ISO 8601 text for timestamps when inferring. Off: dates stay text, because one odd value later would have no place.',
  }),
} as const satisfies Settings;

export const unserved: Refusals = {
  'table.topic.convert.value.by_latest_schema.subject': 'by_latest_schema is not served yet',
  'table.topic.convert.value.by_latest_schema.message.full.name':
    'by_latest_schema is not served yet',
  'table.topic.convert.key.by_latest_schema.subject': 'by_latest_schema is not served yet',
  'table.topic.convert.key.by_latest_schema.message.full.name':
    'by_latest_schema is not served yet',
  'table.topic.types.nanos': 'nanosecond timestamps need format version 3, which is not served yet',
  'table.topic.schema.registry.url': 'the embedded schema registry is the only one served yet',
  'automq.table.topic.schema.type':
    'it mixes converter and transform: set table.topic.convert.value.type and table.topic.transform.value.type',
};

export const unservedValues: Readonly<Record<string, Refusals>> = {
  'table.topic.convert.value.type': {
    by_latest_schema: 'by_latest_schema is not served yet: use by_schema_id, json, string or raw',
  },
  'table.topic.convert.key.type': {
    by_latest_schema: 'by_latest_schema is not served yet: use raw, string, by_schema_id or json',
  },
};

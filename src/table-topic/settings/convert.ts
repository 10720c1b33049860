// Configs that say how keys and values become columns: converters, transforms, schema selection, types.
import { bool, int, oneOf, type Settings, text } from '../../base/settings.ts';
import type { Refusals } from './theme.ts';

export const configs = {
  'table.topic.convert.value.type': oneOf(
    ['by_schema_id', 'json', 'string', 'raw', 'by_latest_schema'],
    {
      default: 'by_schema_id',
      aliases: ['automq.table.topic.convert.value.type'],
      doc: 'How a value becomes columns: by the Avro, Protobuf or JSON schema that the record names (id or GUID before the value, or in the header __value_schema_id), as JSON whose columns are inferred, as text, as bytes, or by the newest schema of a subject where records name none. Must be chosen unless the subject <topic>-value is registered.',
    },
  ),
  'table.topic.convert.key.type': oneOf(
    ['raw', 'string', 'by_schema_id', 'json', 'by_latest_schema'],
    {
      default: 'raw',
      aliases: ['automq.table.topic.convert.key.type'],
      doc: 'How _kafka_key is stored: bytes, text, typed by the schema that the record names (before the key, or in the header __key_schema_id), checked JSON text, or typed by the newest schema of a subject.',
    },
  ),
  'table.topic.convert.value.by_latest_schema.subject': text({
    default: '',
    aliases: ['automq.table.topic.convert.value.by_latest_schema.subject'],
    doc: 'by_latest_schema: the subject whose newest version values are decoded by. Empty: <topic>-value.',
  }),
  'table.topic.convert.value.by_latest_schema.message.full.name': text({
    default: '',
    aliases: ['automq.table.topic.convert.value.by_latest_schema.message.full.name'],
    doc: 'by_latest_schema with Protobuf: the message, by full name. Empty: the only message of the schema.',
  }),
  'table.topic.convert.key.by_latest_schema.subject': text({
    default: '',
    aliases: ['automq.table.topic.convert.key.by_latest_schema.subject'],
    doc: 'by_latest_schema: the subject whose newest version keys are decoded by. Empty: <topic>-key.',
  }),
  'table.topic.convert.key.by_latest_schema.message.full.name': text({
    default: '',
    aliases: ['automq.table.topic.convert.key.by_latest_schema.message.full.name'],
    doc: 'by_latest_schema with Protobuf: the message, by full name. Empty: the only message of the schema.',
  }),
  'table.topic.subject.name.strategy': oneOf(['topic', 'record', 'topic_record'], {
    default: 'topic',
    doc: 'Under which subject producers register: <topic>-value and <topic>-key, the record’s full name, or <topic>-<record>. Tells which version is the newest and so may rename columns; records always name their schema themselves. With record names the columns are known from the first record on.',
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
  'table.topic.types.nanos': bool({
    default: false,
    doc: 'Store timestamps of nanoseconds as timestamptz_ns and timestamp_ns, which needs table.topic.format.version=3 and engines that read them (DuckDB refuses the table). Off: microseconds, by floor. For Avro, Protobuf and JSON that brings Connect’s schema along; a column that holds microseconds already keeps its type, and a further one is made.',
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
  'table.topic.schema.registry.url':
    'one registry serves all topics of a node: set schema.registry.url there',
  'automq.table.topic.schema.type':
    'it mixes converter and transform: set table.topic.convert.value.type and table.topic.transform.value.type',
};

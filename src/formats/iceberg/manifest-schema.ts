// The Avro schemas of manifests and manifest lists, with the field ids by which readers find columns.
// Source: Iceberg table spec, "Manifests", "Manifest Lists" and appendix A (int-keyed maps are arrays of key/value
// records with `logicalType: map`).
import type { AvroField, AvroSchema } from '../avro/value-codec.ts';

/** Canonical names by field id; how readers name what they find, whatever the file calls it. */
export const MANIFEST_FIELD_NAMES: ReadonlyMap<number, string> = new Map([
  [0, 'status'],
  [1, 'snapshot_id'],
  [2, 'data_file'],
  [3, 'sequence_number'],
  [4, 'file_sequence_number'],
  [134, 'content'],
  [100, 'file_path'],
  [101, 'file_format'],
  [102, 'partition'],
  [103, 'record_count'],
  [104, 'file_size_in_bytes'],
  [108, 'column_sizes'],
  [109, 'value_counts'],
  [110, 'null_value_counts'],
  [137, 'nan_value_counts'],
  [125, 'lower_bounds'],
  [128, 'upper_bounds'],
  [131, 'key_metadata'],
  [132, 'split_offsets'],
  [135, 'equality_ids'],
  [140, 'sort_order_id'],
  [142, 'first_row_id'],
  [143, 'referenced_data_file'],
  [144, 'content_offset'],
  [145, 'content_size_in_bytes'],
]);

export const MANIFEST_LIST_FIELD_NAMES: ReadonlyMap<number, string> = new Map([
  [500, 'manifest_path'],
  [501, 'manifest_length'],
  [502, 'partition_spec_id'],
  [517, 'content'],
  [515, 'sequence_number'],
  [516, 'min_sequence_number'],
  [503, 'added_snapshot_id'],
  [504, 'added_files_count'],
  [505, 'existing_files_count'],
  [506, 'deleted_files_count'],
  [512, 'added_rows_count'],
  [513, 'existing_rows_count'],
  [514, 'deleted_rows_count'],
  [507, 'partitions'],
  [509, 'contains_null'],
  [518, 'contains_nan'],
  [510, 'lower_bound'],
  [511, 'upper_bound'],
  [519, 'key_metadata'],
  [520, 'first_row_id'],
]);

const required = (id: number, name: string, type: AvroSchema): AvroField => ({
  name,
  type,
  'field-id': id,
});

const optional = (id: number, name: string, type: AvroSchema): AvroField => ({
  name,
  type: ['null', type],
  default: null,
  'field-id': id,
});

/** An int-keyed map: an array of key/value records, named as every engine names them. */
function intMap(keyId: number, valueId: number, value: AvroSchema): AvroSchema {
  return {
    type: 'array',
    logicalType: 'map',
    items: {
      type: 'record',
      name: `k${keyId}_v${valueId}`,
      fields: [required(keyId, 'key', 'int'), required(valueId, 'value', value)],
    },
  };
}

const array = (elementId: number, items: AvroSchema): AvroSchema => ({
  type: 'array',
  'element-id': elementId,
  items,
});

/** The schema of a manifest of format v2 or v3 whose tuples are `partition`. */
export function manifestAvroSchema(partition: AvroSchema, formatVersion: number): AvroSchema {
  const dataFile: AvroField[] = [
    required(134, 'content', 'int'),
    required(100, 'file_path', 'string'),
    required(101, 'file_format', 'string'),
    required(102, 'partition', partition),
    required(103, 'record_count', 'long'),
    required(104, 'file_size_in_bytes', 'long'),
    optional(108, 'column_sizes', intMap(117, 118, 'long')),
    optional(109, 'value_counts', intMap(119, 120, 'long')),
    optional(110, 'null_value_counts', intMap(121, 122, 'long')),
    optional(137, 'nan_value_counts', intMap(138, 139, 'long')),
    optional(125, 'lower_bounds', intMap(126, 127, 'bytes')),
    optional(128, 'upper_bounds', intMap(129, 130, 'bytes')),
    optional(131, 'key_metadata', 'bytes'),
    optional(132, 'split_offsets', array(133, 'long')),
    optional(135, 'equality_ids', array(136, 'int')),
    optional(140, 'sort_order_id', 'int'),
    ...(formatVersion >= 3 ? [optional(142, 'first_row_id', 'long')] : []),
    optional(143, 'referenced_data_file', 'string'),
    ...(formatVersion >= 3
      ? [optional(144, 'content_offset', 'long'), optional(145, 'content_size_in_bytes', 'long')]
      : []),
  ];
  return {
    type: 'record',
    name: 'manifest_entry',
    fields: [
      required(0, 'status', 'int'),
      optional(1, 'snapshot_id', 'long'),
      optional(3, 'sequence_number', 'long'),
      optional(4, 'file_sequence_number', 'long'),
      required(2, 'data_file', { type: 'record', name: 'r2', fields: dataFile }),
    ],
  };
}

/** The schema of a manifest list of format v2 or v3. */
export function manifestListAvroSchema(formatVersion: number): AvroSchema {
  const summary: AvroSchema = {
    type: 'record',
    name: 'r508',
    fields: [
      required(509, 'contains_null', 'boolean'),
      optional(518, 'contains_nan', 'boolean'),
      optional(510, 'lower_bound', 'bytes'),
      optional(511, 'upper_bound', 'bytes'),
    ],
  };
  return {
    type: 'record',
    name: 'manifest_file',
    fields: [
      required(500, 'manifest_path', 'string'),
      required(501, 'manifest_length', 'long'),
      required(502, 'partition_spec_id', 'int'),
      required(517, 'content', 'int'),
      required(515, 'sequence_number', 'long'),
      required(516, 'min_sequence_number', 'long'),
      required(503, 'added_snapshot_id', 'long'),
      required(504, 'added_files_count', 'int'),
      required(505, 'existing_files_count', 'int'),
      required(506, 'deleted_files_count', 'int'),
      required(512, 'added_rows_count', 'long'),
      required(513, 'existing_rows_count', 'long'),
      required(514, 'deleted_rows_count', 'long'),
      optional(507, 'partitions', array(508, summary)),
      optional(519, 'key_metadata', 'bytes'),
      ...(formatVersion >= 3 ? [optional(520, 'first_row_id', 'long')] : []),
    ],
  };
}

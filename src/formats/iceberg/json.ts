// Table metadata as JSON with exact 64-bit integers: snapshot ids are bigint, and so is any integer past 2^53.
// Metadata of format v1 is brought into the shape of v2 when read, and gets v1's own fields back when written.
// Source: Iceberg table spec, appendix C "JSON serialization".
import { FloeError } from '../../base/error.ts';
import { checkMetadata } from './metadata-check.ts';
import type { PartitionField, Schema, TableMetadata } from './types.ts';

/** Keys whose numbers are 64-bit ids, large or small. */
const ID_KEYS: ReadonlySet<string> = new Set([
  'snapshot-id',
  'parent-snapshot-id',
  'current-snapshot-id',
  'source-snapshot-id',
]);

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
/** ES2025's source text access; the type library lags behind V8. */
const parseWithSource = JSON.parse as (text: string, reviver: Reviver) => unknown;
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

const revive: Reviver = (key, value, { source }) => {
  if (typeof value === 'number') {
    if (ID_KEYS.has(key) && Number.isInteger(value)) return BigInt(source!);
    if (Number.isSafeInteger(value) || !/^-?\d+$/.test(source!)) return value;
    return BigInt(source!);
  }
  if (key === 'snapshot-ids' && Array.isArray(value)) {
    return value.map((id) => (typeof id === 'number' ? BigInt(id) : id));
  }
  return value;
};

/** JSON of metadata or of a REST body → values. @throws FloeError `invalid` when it isn't JSON. */
export function parseIcebergJson(text: string): unknown {
  try {
    return parseWithSource(text, revive);
  } catch (caught) {
    throw new FloeError('invalid', `not JSON: ${FloeError.from(caught).message}`, {
      cause: caught,
    });
  }
}

/** Values → JSON text, bigints as plain integers. */
export function stringifyIcebergJson(value: unknown): string {
  return JSON.stringify(value, (_key, item) =>
    typeof item === 'bigint' ? rawJSON(String(item)) : item,
  );
}

type Loose = Record<string, unknown>;

/** JSON text of a metadata file → metadata. @throws FloeError `corrupt` naming what is wrong. */
export function parseTableMetadata(text: string): TableMetadata {
  let raw: unknown;
  try {
    raw = parseIcebergJson(text);
  } catch (caught) {
    throw new FloeError('corrupt', `table metadata is ${FloeError.from(caught).message}`, {
      cause: caught,
    });
  }
  return toTableMetadata(raw);
}

/** Parsed JSON (of {@link parseIcebergJson}) → metadata. @throws FloeError `corrupt`. */
export function toTableMetadata(raw: unknown): TableMetadata {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    throw new FloeError('corrupt', 'table metadata is not a JSON object');
  }
  const loose = raw as Loose;
  const metadata = normalise(loose['format-version'] === 1 ? fromV1(loose) : loose);
  checkMetadata(metadata);
  return metadata;
}

/** Java writes null for what is absent, and -1 for "no snapshot". */
function normalise(loose: Loose): TableMetadata {
  const present: Loose = {};
  for (const [key, value] of Object.entries(loose)) if (value !== null) present[key] = value;
  if (present['current-snapshot-id'] === -1n) delete present['current-snapshot-id'];
  const current = present['current-snapshot-id'];
  if (present['refs'] === undefined && current !== undefined) {
    present['refs'] = { main: { 'snapshot-id': current, type: 'branch' } };
  }
  return present as unknown as TableMetadata;
}

function fromV1(loose: Loose): Loose {
  const { schema, 'partition-spec': spec, ...rest } = loose;
  const schemas = (loose['schemas'] as Schema[] | undefined) ?? [
    { 'schema-id': 0, ...(schema as Omit<Schema, 'schema-id'>) },
  ];
  const specs = (loose['partition-specs'] as
    | { 'spec-id': number; fields: PartitionField[] }[]
    | undefined) ?? [{ 'spec-id': 0, fields: (spec ?? []) as PartitionField[] }];
  const numbered = specs.map((one) => ({
    ...one,
    fields: (one.fields ?? []).map((field, index) => ({
      'field-id': 1000 + index,
      ...(field as Omit<PartitionField, 'field-id'> & { 'field-id'?: number }),
    })),
  }));
  const highest = Math.max(
    999,
    ...numbered.flatMap((one) => one.fields.map((field) => field['field-id'])),
  );
  return {
    'table-uuid': '00000000-0000-0000-0000-000000000000',
    'last-sequence-number': 0,
    'current-schema-id': schemas[0]?.['schema-id'] ?? 0,
    'default-spec-id': 0,
    'last-partition-id': highest,
    'sort-orders': [{ 'order-id': 0, fields: [] }],
    'default-sort-order-id': 0,
    ...rest,
    schemas,
    'partition-specs': numbered,
  };
}

/** Lists whose entries never change and are carried from commit to commit; a table of a day has thousands. */
const CARRIED = ['snapshots', 'snapshot-log', 'metadata-log'] as const;

const texts = new WeakMap<object, string>();

/** Texts of carried entries are made once: a commit's cost doesn't grow with the table's history. */
function carriedText(entry: object): string {
  let text = texts.get(entry);
  if (text === undefined) {
    text = stringifyIcebergJson(entry);
    texts.set(entry, text);
  }
  return text;
}

/** The metadata file's text. */
export function serialiseTableMetadata(metadata: TableMetadata): string {
  const rest = metadataToJson(metadata) as Loose;
  const parts: string[] = [];
  for (const key of CARRIED) {
    const entries = rest[key] as readonly object[] | undefined;
    if (entries !== undefined) parts.push(`,"${key}":[${entries.map(carriedText).join(',')}]`);
    rest[key] = undefined;
  }
  return `${stringifyIcebergJson(rest).slice(0, -1)}${parts.join('')}}`;
}

/** Metadata as it goes into JSON: v1 also carries the fields that only v1 readers know. */
export function metadataToJson(metadata: TableMetadata): unknown {
  if (metadata['format-version'] !== 1) return { ...metadata };
  const schema = metadata.schemas.find((one) => one['schema-id'] === metadata['current-schema-id']);
  const spec = metadata['partition-specs'].find(
    (one) => one['spec-id'] === metadata['default-spec-id'],
  );
  return { ...metadata, schema, 'partition-spec': spec?.fields ?? [] };
}

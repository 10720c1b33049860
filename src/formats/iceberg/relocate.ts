// Iceberg files whose locations move: every absolute URI in metadata JSON, manifest lists, manifests and the footers of
// deletion vectors is put through a map; all else stays as it is, fields of other writers included. Pure: bytes to bytes.
// Not for: which files there are and in which order (sizes of what is rewritten go into what names it).
import { openContainer, writeContainer } from '../avro/container.ts';
import type { AvroObject, AvroSchema } from '../avro/value-codec.ts';
import { parseIcebergJson, stringifyIcebergJson } from './json.ts';
import { syncMarker } from './manifest.ts';
import { DELETE_FILE_PATH_ID } from './position-deletes.ts';
import type { DataFile } from './types.ts';

/** A location, where it is one that moves; else the same text. */
export type Moved = (text: string) => string;

/** What an Avro file of a warehouse is; `other`: no metadata. */
export type AvroKind = 'manifest' | 'manifest-list' | 'other';

/** @throws FloeError `corrupt` when it is no Avro container. */
export function avroKind(bytes: Uint8Array): AvroKind {
  const names = fieldNames(openContainer(bytes).schema);
  if (names.has('data_file')) return 'manifest';
  return names.has('manifest_path') ? 'manifest-list' : 'other';
}

function fieldNames(schema: AvroSchema): ReadonlySet<string> {
  const { fields = [] } = typeof schema === 'object' ? (schema as AvroObject) : {};
  return new Set(fields.map(({ name }) => name));
}

/** Metadata of a table or view, 64-bit numbers kept. @throws FloeError `invalid`. */
export function relocateJson(text: string, moved: Moved): string {
  return stringifyIcebergJson(relocated(parseIcebergJson(text), moved));
}

/** Files that a manifest of deletes names by position: `[location, format]`. */
export function positionDeleteFiles(bytes: Uint8Array): readonly (readonly [string, string])[] {
  return (openContainer(bytes).records() as Entry[])
    .filter(({ data_file: file }) => file['content'] === 1)
    .map(({ data_file: file }) => [
      file['file_path'] as string,
      String(file['file_format']).toUpperCase(),
    ]);
}

/** A file that was written anew because of what it names. `metrics`: of a position delete file. */
export type Rewritten = Pick<DataFile, 'fileSizeInBytes'> &
  Partial<Pick<DataFile, 'metrics' | 'splitOffsets'>>;

interface Entry {
  readonly data_file: Readonly<Record<string, unknown>>;
}

/** `rewritten`: by the old location. @throws FloeError `corrupt`. */
export function relocateManifest(
  bytes: Uint8Array,
  moved: Moved,
  rewritten: ReadonlyMap<string, Rewritten>,
): Uint8Array {
  return rewrite(bytes, moved, (record) => {
    const { data_file: file } = record as unknown as Entry;
    const anew = rewritten.get(file['file_path'] as string);
    if (anew === undefined) return record;
    return { ...record, data_file: { ...file, ...described(anew) } };
  });
}

function described({ fileSizeInBytes, metrics, splitOffsets }: Rewritten): object {
  if (metrics === undefined) return { file_size_in_bytes: fileSizeInBytes };
  const bounds = (of: ReadonlyMap<number, Uint8Array>) => {
    const value = of.get(DELETE_FILE_PATH_ID);
    return value === undefined ? null : [{ key: DELETE_FILE_PATH_ID, value }];
  };
  return {
    file_size_in_bytes: fileSizeInBytes,
    column_sizes: [...metrics.columnSizes].map(([key, value]) => ({ key, value })),
    lower_bounds: bounds(metrics.lowerBounds),
    upper_bounds: bounds(metrics.upperBounds),
    split_offsets: splitOffsets ?? null,
  };
}

/** `lengthOf`: of a manifest that was rewritten, by its old location. @throws FloeError `corrupt`. */
export function relocateManifestList(
  bytes: Uint8Array,
  moved: Moved,
  lengthOf: ReadonlyMap<string, number>,
): Uint8Array {
  return rewrite(bytes, moved, (record) => {
    const length = lengthOf.get(record['manifest_path'] as string);
    return length === undefined ? record : { ...record, manifest_length: length };
  });
}

type AvroRecord = Readonly<Record<string, unknown>>;

function rewrite(
  bytes: Uint8Array,
  moved: Moved,
  changed: (record: AvroRecord) => AvroRecord,
): Uint8Array {
  const { schema, metadata, records } = openContainer(bytes);
  const { 'avro.schema': _schema, 'avro.codec': _codec, ...rest } = Object.fromEntries(metadata);
  const written = (records() as AvroRecord[]).map((record) => relocated(changed(record), moved));
  const sync = syncMarker(bytes.length + Buffer.from(bytes.subarray(-16)).toString('hex'));
  return writeContainer(written, { schema, metadata: rest, sync });
}

/** Every text of a value. */
function relocated(value: unknown, moved: Moved): unknown {
  if (typeof value === 'string') return moved(value);
  if (Array.isArray(value)) return value.map((item) => relocated(item, moved));
  if (value instanceof Map)
    return new Map([...value].map(([key, item]) => [key, relocated(item, moved)]));
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, relocated(item, moved)]),
  );
}

/** Payload length, flags and magic at the end of a Puffin file. */
const TAIL_BYTES = 12;

/** Blobs stay where they are, so offsets in manifests hold; a footer that is compressed is left alone (no vectors of ours). */
export function relocatePuffin(bytes: Uint8Array, moved: Moved): Uint8Array {
  const tail = Buffer.from(bytes.subarray(-TAIL_BYTES));
  const length = tail.readUInt32LE(0);
  const compressed = (tail[4]! & 1) === 1;
  const start = bytes.length - TAIL_BYTES - length;
  if (compressed || start < 8) return bytes;
  const payload = Buffer.from(bytes.subarray(start, start + length)).toString();
  const footer = Buffer.from(relocateJson(payload, moved));
  tail.writeUInt32LE(footer.length, 0);
  return Buffer.concat([bytes.subarray(0, start), footer, tail]);
}

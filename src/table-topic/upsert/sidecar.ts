// The sidecar of a staged range (rule K4): for every change that a job made of its records the key's hash, the row it
// became (or none: a deletion) and its order stamp, beside the data files and under the same intents (rule M2).
// Layout: magic, JSON header with its length, the columns of entries.ts one after another, CRC-32 of all before it.
// Not for: which rows a job keeps (row-keys.ts).
import { crc32 } from 'node:zlib';
import { FloeError } from '../../base/error.ts';
import { ENTRY_BYTES, type EntryColumns, HASH_WORDS } from './entries.ts';

const MAGIC = 0x314b_4c46; // "FLK1"
const FIXED_BYTES = 8;

/** How a stage names its sidecar. */
export interface SidecarRef {
  /** Absolute URI. */
  readonly path: string;
  /** Field ids of the key's columns, in order: a sidecar of other ones can't be resolved. */
  readonly idFields: readonly number[];
  readonly changes: number;
}

export interface Sidecar {
  /** Paths of data files; entries name them by their place here. */
  readonly files: readonly string[];
  /** Offsets before it (by stamp) mean nothing any more: the newest truncate of the range; undefined when none came. */
  readonly truncate?: Stamp;
  readonly changes: EntryColumns;
  /** Rows that wait for cells of the key's row of before. Their files hold nothing else. */
  readonly partial?: PartialSets;
}

export interface PartialSets {
  /** Field ids of top-level columns that rows lack, by number of the set. */
  readonly sets: readonly (readonly number[])[];
  /** Number of its set for each change, −1 for a row that is whole and for deletions. */
  readonly of: Int32Array;
}

/** Paths of the files whose rows wait for cells. */
export function partialFiles({ files, changes, partial }: Sidecar): readonly string[] {
  if (partial === undefined) return [];
  const found = new Set<number>();
  for (let n = 0; n < changes.count; n += 1) if (partial.of[n]! >= 0) found.add(changes.files[n]!);
  return [...found].map((file) => files[file]!);
}

export interface Stamp {
  readonly commit: number;
  readonly partition: number;
  readonly offset: number;
}

export function encodeSidecar({ files, changes, truncate, partial }: Sidecar): Uint8Array[] {
  const text = JSON.stringify({ files, count: changes.count, truncate, sets: partial?.sets });
  // Padded with spaces so that the columns are aligned.
  const length = Math.ceil((Buffer.byteLength(text) + FIXED_BYTES) / 8) * 8 - FIXED_BYTES;
  const head = Buffer.alloc(FIXED_BYTES + length, ' ');
  head.writeUInt32LE(MAGIC, 0);
  head.writeUInt32LE(length, 4);
  head.write(text, FIXED_BYTES);
  const parts = [new Uint8Array(head), ...columnBytes(changes)];
  if (partial !== undefined) parts.push(bytesOf(partial.of));
  let checksum = 0;
  for (const part of parts) checksum = crc32(part, checksum);
  const tail = new Uint8Array(4);
  new DataView(tail.buffer).setUint32(0, checksum, true);
  return [...parts, tail];
}

/** Columns of eight bytes first, for their alignment. */
function columnBytes(changes: EntryColumns): Uint8Array[] {
  const { count, hashes, files, positions, commits, partitions, offsets } = changes;
  const cut = [
    commits.subarray(0, count),
    offsets.subarray(0, count),
    hashes.subarray(0, count * HASH_WORDS),
    files.subarray(0, count),
    positions.subarray(0, count),
    partitions.subarray(0, count),
  ];
  return cut.map(bytesOf);
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float64Array | Int32Array | Uint32Array) =>
  new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);

/** @throws FloeError `corrupt`. */
export function decodeSidecar(stored: Uint8Array, path: string): Sidecar {
  const bad = (why: string) => new FloeError('corrupt', `sidecar ${path}: ${why}`);
  if (stored.length < FIXED_BYTES + 4) throw bad('too short');
  const bytes = stored.byteOffset % 8 === 0 ? stored : stored.slice();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0, true) !== MAGIC) throw bad('not one');
  if (crc32(bytes.subarray(0, -4)) !== view.getUint32(bytes.length - 4, true)) {
    throw bad('wrong checksum');
  }
  const length = view.getUint32(4, true);
  const text = Buffer.from(bytes.subarray(FIXED_BYTES, FIXED_BYTES + length)).toString();
  const { files, count, truncate, sets } = JSON.parse(text) as Pick<Sidecar, 'files' | 'truncate'> &
    Partial<Pick<PartialSets, 'sets'>> & { readonly count: number };
  let at = bytes.byteOffset + FIXED_BYTES + length;
  const entryBytes = ENTRY_BYTES + (sets === undefined ? 0 : 4);
  if (FIXED_BYTES + length + count * entryBytes + 4 !== bytes.length) throw bad('wrong length');
  const take = (size: number) => {
    const from = at;
    at += size;
    return from;
  };
  const { buffer } = bytes;
  const commits = new Float64Array(buffer, take(count * 8), count);
  const offsets = new Float64Array(buffer, take(count * 8), count);
  const hashes = new Int32Array(buffer, take(count * 4 * HASH_WORDS), count * HASH_WORDS);
  const fileNumbers = new Int32Array(buffer, take(count * 4), count);
  const positions = new Uint32Array(buffer, take(count * 4), count);
  const partitions = new Int32Array(buffer, take(count * 4), count);
  const partial =
    sets === undefined ? undefined : { sets, of: new Int32Array(buffer, take(count * 4), count) };
  return {
    files,
    ...(truncate === undefined ? {} : { truncate }),
    ...(partial === undefined ? {} : { partial }),
    changes: { count, hashes, files: fileNumbers, positions, commits, partitions, offsets },
  };
}

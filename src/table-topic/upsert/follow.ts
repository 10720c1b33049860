// Brings an index to another snapshot of its table (rule K3): what foreign commits, compaction or a lost index left to
// be found out. The live files of the snapshot are held against those the index knows; new ones, and those whose deletes
// changed in any way, are read again; what is gone just stops counting. Keys keep the stamps they had. An index that
// knows nothing is built the same way: all files are new.
// Not for: our own commits, whose outcome is known without reading (key-index.ts).
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Int32Column, Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { readDeletionVector } from '../../formats/iceberg/deletion-vector.ts';
import {
  currentSchema,
  type FileReader,
  findField,
  mappingOf,
  nameMapping,
  projectionOf,
  WHOLE_FILE,
} from '../../formats/iceberg/index.ts';
import { partitionKey } from '../../formats/iceberg/partition.ts';
import { vectorBlob } from '../../formats/iceberg/puffin.ts';
import type { DataFile, Schema, TableMetadata } from '../../formats/iceberg/types.ts';
import { KeyHasher } from './canonical-key.ts';
import { compareStamps, Entries, groupEnd, HASH_WORDS, sortedByHash } from './entries.ts';
import type { UpsertTable } from './id-columns.ts';
import { deleteKey, type IndexedDelete, type IndexedFile, type KeyStore } from './key-store.ts';
import type { LiveFiles } from './live-files.ts';
import { readPositionDeletes } from './read-deletes.ts';
import { type KeyColumn, readKeyColumns } from './read-keys.ts';

/** Entries that are sorted and looked up at a time: a rebuild takes some 100 bytes for each. */
const ENTRIES_AT_ONCE = 4_000_000;
/** The id of a column that the table hasn't. */
const NOT_THERE = -1;
/** Most rows one deletion vector may name. */
const MAX_VECTOR_ROWS = 100_000_000;

export interface FollowRequest {
  readonly store: KeyStore;
  readonly io: FileReader;
  readonly live: LiveFiles;
  /** Decimal text of the snapshot, empty for none. */
  readonly snapshotId: string;
  readonly metadata: TableMetadata;
  readonly upsert: UpsertTable;
  /** Field ids of `_kafka_partition` and `_kafka_offset`, when rows must be told apart by age (turning upserts on). */
  readonly order?: { readonly partition: number | undefined; readonly offset: number | undefined };
}

export interface Followed {
  readonly filesRead: number;
  readonly rowsRead: number;
  /** Keys with more than one live row, as far as they were met. */
  readonly duplicates: Entries;
}

/** @throws FloeError as reads do; the index is then where it was, or part of the way with the old snapshot's name. */
export async function follow(request: FollowRequest): Promise<Followed> {
  const { store, live } = request;
  const stale = await staleFiles(request);
  const gone = [...store.files.values()]
    .filter(({ file }) => !live.data.has(file.filePath) || stale.has(file.filePath))
    .map(({ id }) => id);
  const unread = [...live.data.values()].filter(
    ({ file }) => stale.has(file.filePath) || store.fileByPath(file.filePath) === undefined,
  );
  const deletesGone = [...store.deletes.keys()].filter((key) => !live.deletes.has(key));
  const deletes = [...live.deletes].flatMap(([key, one]) => (store.deletes.has(key) ? [] : [one]));
  const unfinished = store.snapshotId ?? '';
  store.apply({ snapshotId: unfinished, filesGone: gone });
  const duplicates = new Entries();
  const rows = new RowReader(request);
  let rowsRead = 0;
  for (let at = 0; at < unread.length; ) {
    const entries = new Entries(rowsAtOnce(unread, at));
    const files: IndexedFile[] = [];
    while (at < unread.length && (files.length === 0 || entries.count < ENTRIES_AT_ONCE)) {
      const { file, sequenceNumber } = unread[at]!;
      at += 1;
      const id = store.newFileId();
      const before = entries.count;
      await rows.read({ file, sequenceNumber, id }, entries);
      const deleted = file.recordCount - (entries.count - before);
      files.push({ id, file, sequenceNumber, deleted });
    }
    rowsRead += entries.count;
    store.apply({
      snapshotId: unfinished,
      files,
      entries: joined(store, sortedByHash(entries), duplicates),
    });
    store.join(-1);
  }
  store.apply({ snapshotId: request.snapshotId, deletesGone, deletes });
  return { filesRead: unread.length, rowsRead, duplicates };
}

/** Room for the files from `at` on that are read together, so that it needn't grow; what a manifest says isn't sure. */
function rowsAtOnce(files: readonly { readonly file: DataFile }[], at: number): number {
  let rows = 0;
  for (let n = at; n < files.length && rows < ENTRIES_AT_ONCE; n += 1)
    rows += files[n]!.file.recordCount;
  return Math.max(1, Math.min(rows, ENTRIES_AT_ONCE * 1.25));
}

/** Known data files whose deletes are others by now. */
async function staleFiles({ store, live, io }: FollowRequest): Promise<Set<string>> {
  const changed: IndexedDelete[] = [];
  for (const [key, one] of live.deletes) if (!store.deletes.has(key)) changed.push(one);
  for (const [key, one] of store.deletes) if (!live.deletes.has(key)) changed.push(one);
  const stale = new Set<string>();
  for (const { file, sequenceNumber } of changed) {
    for (const path of await concerned(store, io, { file, sequenceNumber })) {
      if (store.fileByPath(path) !== undefined && live.data.has(path)) stale.add(path);
    }
  }
  return stale;
}

/** The data files that a delete file is about; those of its partition where it doesn't say, or can't be read any more. */
async function concerned(
  store: KeyStore,
  io: FileReader,
  { file, sequenceNumber }: IndexedDelete,
): Promise<Iterable<string>> {
  if (file.referencedDataFile !== undefined) return [file.referencedDataFile];
  if (file.content === 1) {
    try {
      return (await readPositionDeletes(await io.read(file.filePath), file.filePath)).keys();
    } catch (caught) {
      if (!isFloeError(caught, 'not-found')) throw caught;
    }
  }
  const key = partitionKey(file.specId, file.partition);
  return [...store.files.values()]
    .filter((one) => one.sequenceNumber <= sequenceNumber)
    .filter(
      (one) =>
        (file.content === 2 && file.partition.length === 0) ||
        partitionKey(one.file.specId, one.file.partition) === key,
    )
    .map((one) => one.file.filePath);
}

/** New rows beside what the index has of their keys: other rows that live, and the newest stamp. */
function joined(store: KeyStore, rows: Entries, duplicates: Entries): Entries {
  if (store.entryCount === 0) {
    for (let n = 0; n < rows.count; ) {
      const end = groupEnd(rows, n);
      if (end - n > 1) duplicates.copy(rows, n);
      n = end;
    }
    return rows;
  }
  const distinct = new Entries(Math.max(1, rows.count));
  for (let n = 0; n < rows.count; n = groupEnd(rows, n)) distinct.copy(rows, n);
  const known = store.lookup(distinct);
  const result = new Entries(Math.max(1, rows.count));
  let probe = 0;
  for (let n = 0; n < rows.count; probe += 1) {
    const end = groupEnd(rows, n);
    const start = known.starts[probe]!;
    const stop = start + known.sizes[probe]!;
    let newest = -1;
    const first = result.count;
    for (let m = start; m < stop; m += 1) {
      if (newest === -1 || compareStamps(known.entries, m, known.entries, newest) > 0) newest = m;
      if (store.isLive(known.entries, m)) result.copy(known.entries, m);
    }
    for (; n < end; n += 1) {
      result.copy(rows, n);
      if (newest === -1) continue;
      const at = result.count - 1;
      result.commits[at] = known.entries.commits[newest]!;
      result.partitions[at] = known.entries.partitions[newest]!;
      result.offsets[at] = known.entries.offsets[newest]!;
    }
    if (result.count - first > 1) duplicates.copy(result, first);
  }
  return result;
}

interface UnreadFile {
  readonly id: number;
  readonly file: DataFile;
  readonly sequenceNumber: number;
}

/** Reads data files' keys, rows that deletes have taken left out. */
class RowReader {
  readonly #request: FollowRequest;
  readonly #schema: Schema;
  readonly #wanted: KeyColumn[];
  readonly #positionDeletes = new Map<string, Promise<Map<string, Float64Array>>>();
  readonly #equality = new Map<string, Promise<EqualityDelete>>();
  readonly #baseStamp;

  constructor(request: FollowRequest) {
    this.#request = request;
    const { order, upsert, store } = request;
    this.#schema = currentSchema(request.metadata);
    this.#wanted = upsert.columns.map(({ fieldId, type }) => ({ fieldId, type }));
    if (order !== undefined) {
      this.#wanted.push({ fieldId: order.partition ?? NOT_THERE, type: 'int' });
      this.#wanted.push({ fieldId: order.offset ?? NOT_THERE, type: 'long' });
    }
    // Rows that somebody added lately must not count as older than a truncate.
    this.#baseStamp = store.truncate ?? { commit: 0, partition: 0, offset: 0 };
  }

  async read({ id, file, sequenceNumber }: UnreadFile, into: Entries): Promise<void> {
    const { io, metadata, upsert } = this.#request;
    if (file.fileFormat !== 'PARQUET')
      throw new FloeError(
        'unsupported',
        `${file.filePath} is ${file.fileFormat}: upserts read Parquet`,
      );
    const bytes = await io.read(file.filePath);
    const gone = await this.#deletedRows(file, sequenceNumber, bytes);
    const keys = upsert.columns.length;
    let taken = 0;
    for await (const { firstRow, rowCount, columns } of readKeyColumns(bytes, file.filePath, {
      schema: this.#schema,
      wanted: this.#wanted,
      projection: projectionOf(metadata, file),
    })) {
      const hasher = new KeyHasher(columns.slice(0, keys), upsert.hashKey);
      const [partitions, offsets] = columns.slice(keys) as [Int32Column?, Int64Column?];
      into.reserve(into.count + rowCount);
      const { hash } = hasher;
      const { hashes, files, positions, commits } = into;
      const { commit, partition, offset } = this.#baseStamp;
      let n = into.count;
      for (let row = 0; row < rowCount; row += 1) {
        const position = firstRow + row;
        while (taken < gone.length && gone[taken]! < position) taken += 1;
        if (gone[taken] === position) continue;
        hasher.row(row);
        hashes[n * HASH_WORDS] = hash.h0;
        hashes[n * HASH_WORDS + 1] = hash.h1;
        hashes[n * HASH_WORDS + 2] = hash.h2;
        hashes[n * HASH_WORDS + 3] = hash.h3;
        files[n] = id;
        positions[n] = position;
        commits[n] = commit;
        into.partitions[n] = partition;
        into.offsets[n] = offset;
        if (partitions?.isValid(row) === true) into.partitions[n] = partitions.values[row]!;
        if (offsets?.isValid(row) === true) into.offsets[n] = Number(offsets.valueAt(row));
        n += 1;
      }
      into.count = n;
    }
  }

  /** Ascending. */
  async #deletedRows(
    file: DataFile,
    sequenceNumber: number,
    bytes: Uint8Array,
  ): Promise<Float64Array> {
    const { live, io } = this.#request;
    const parts: Float64Array[] = [];
    const key = partitionKey(file.specId, file.partition);
    let vector: DataFile | undefined;
    const equality: IndexedDelete[] = [];
    for (const one of live.deletes.values()) {
      const global = one.file.content === 2 && one.file.partition.length === 0;
      const named = one.file.referencedDataFile;
      if (
        named === undefined
          ? !global && partitionKey(one.file.specId, one.file.partition) !== key
          : named !== file.filePath
      )
        continue;
      if (one.file.content === 2) {
        if (one.sequenceNumber > sequenceNumber) equality.push(one);
      } else if (one.file.fileFormat === 'PUFFIN') vector = one.file;
      else if (one.sequenceNumber >= sequenceNumber) {
        const rows = (await this.#positions(one.file)).get(file.filePath);
        if (rows !== undefined) parts.push(rows);
      }
    }
    if (vector !== undefined) {
      // K5: a vector holds all deletes of its file.
      const blob = vectorBlob(await io.read(vector.filePath), vector);
      parts.splice(0, parts.length, await readDeletionVector(blob, MAX_VECTOR_ROWS));
    }
    for (const one of equality) parts.push(await this.#equalRows(one.file, file, bytes));
    if (parts.length <= 1) return parts[0] ?? new Float64Array(0);
    return Float64Array.from(new Set(parts.flatMap((part) => [...part]))).sort();
  }

  #positions(file: DataFile): Promise<Map<string, Float64Array>> {
    let read = this.#positionDeletes.get(file.filePath);
    if (read === undefined) {
      const { io } = this.#request;
      read = io.read(file.filePath).then((bytes) => readPositionDeletes(bytes, file.filePath));
      this.#positionDeletes.set(file.filePath, read);
    }
    return read;
  }

  /** The rows of a data file that an equality delete takes. */
  async #equalRows(deletes: DataFile, file: DataFile, bytes: Uint8Array): Promise<Float64Array> {
    const key = deleteKey(deletes);
    let read = this.#equality.get(key);
    if (read === undefined) {
      read = readEqualityDelete(this.#request, deletes);
      this.#equality.set(key, read);
    }
    const { columns: wanted, values } = await read;
    const rows: number[] = [];
    const { metadata, upsert } = this.#request;
    for await (const group of readKeyColumns(bytes, file.filePath, {
      schema: schemaWith(metadata.schemas, wanted),
      wanted,
      projection: projectionOf(metadata, file),
    })) {
      const hasher = new KeyHasher(group.columns, upsert.hashKey);
      for (let row = 0; row < group.rowCount; row += 1) {
        hasher.row(row);
        if (values.has(hashText(hasher))) rows.push(group.firstRow + row);
      }
    }
    return Float64Array.from(rows);
  }
}

interface EqualityDelete {
  readonly columns: readonly KeyColumn[];
  readonly values: ReadonlySet<string>;
}

const hashText = ({ hash: { h0, h1, h2, h3 } }: KeyHasher) => `${h0},${h1},${h2},${h3}`;

async function readEqualityDelete(
  { io, metadata, upsert }: FollowRequest,
  file: DataFile,
): Promise<EqualityDelete> {
  const columns = (file.equalityIds ?? []).map((fieldId) => {
    for (const schema of metadata.schemas.toReversed()) {
      const field = findField(schema, fieldId);
      if (field !== undefined && typeof field.type === 'string')
        return { fieldId, type: field.type };
    }
    throw new FloeError('unsupported', `equality deletes by field ${fieldId}, which nobody knows`);
  });
  const values = new Set<string>();
  const bytes = await io.read(file.filePath);
  const schema = schemaWith(metadata.schemas, columns);
  for await (const group of readKeyColumns(bytes, file.filePath, {
    schema,
    wanted: columns,
    projection: { ...WHOLE_FILE, mapping: nameMapping(metadata) ?? mappingOf(schema) },
  })) {
    const hasher = new KeyHasher(group.columns, upsert.hashKey);
    for (let row = 0; row < group.rowCount; row += 1) {
      hasher.row(row);
      values.add(hashText(hasher));
    }
  }
  return { columns, values };
}

/** The newest schema that has all the columns. */
function schemaWith(schemas: readonly Schema[], columns: readonly { fieldId: number }[]): Schema {
  const found = schemas.findLast((schema) =>
    columns.every(({ fieldId }) => findField(schema, fieldId) !== undefined),
  );
  if (found === undefined)
    throw new FloeError('unsupported', 'equality deletes over columns of several schemas');
  return found;
}

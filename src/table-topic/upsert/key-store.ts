// The key index of one table on this node's disk (rule K3): which snapshot it reflects, the live data files and delete
// files of that snapshot, and for each key all its rows and its order stamp. SQLite holds the state and moves it in one
// transaction; the entries themselves are sorted runs (run.ts), joined as they grow, so that a look-up reads few.
// A row counts while its file is live here and its stamp isn't below the newest truncate; what doesn't count keeps its
// stamp until every partition has passed it. Synchronous: it lives in a thread of its own.
// Not for: reading tables (follow.ts), deciding what a change does (resolve.ts).
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { FloeError } from '../../base/error.ts';
import type { DataFile } from '../../formats/iceberg/types.ts';
import { Entries, type EntryColumns, NO_FILE } from './entries.ts';
import { encodeRun, mergeRuns, Run, RunBuilder, type RunFiles } from './run.ts';
import type { Stamp } from './sidecar.ts';
import { formatFile, parseFile } from './state-text.ts';

/** A live data file. */
export interface IndexedFile {
  readonly id: number;
  readonly file: DataFile;
  readonly sequenceNumber: number;
  /** Rows that deletes have taken. */
  readonly deleted: number;
}

/** A live delete file. */
export interface IndexedDelete {
  readonly file: DataFile;
  readonly sequenceNumber: number;
}

/** What a table is to its index: another one means another index. */
export interface IndexIdentity {
  readonly tableUuid: string;
  /** Field ids of the key's columns, in order. */
  readonly idFields: readonly number[];
  /** Whose changes its stamps are. */
  readonly topicId: string;
  /** After a rewind: what was known before counts no more. */
  readonly generation?: string;
}

/** A step to another snapshot, made whole or not at all. */
export interface IndexStep {
  /** Decimal text; empty for a table without snapshots. */
  readonly snapshotId: string;
  /** Sorted by hash; each key with all its entries. */
  readonly entries?: EntryColumns;
  readonly files?: readonly IndexedFile[];
  readonly filesGone?: readonly number[];
  readonly deletes?: readonly IndexedDelete[];
  readonly deletesGone?: readonly string[];
  readonly truncate?: Stamp | undefined;
  /** Our own newest commit that the index has taken in, by its id; as it was when left out. */
  readonly commitId?: string;
}

/** All of an index but its runs, as a checkpoint keeps it. */
export interface IndexState {
  readonly identity: string;
  /** Told apart from other lives of the index: names of runs are unique within it. */
  readonly origin: string;
  readonly snapshotId: string;
  readonly commitId: string;
  readonly nextFile: number;
  readonly nextRun: number;
  readonly truncate: Stamp | undefined;
  readonly files: readonly (readonly [
    id: number,
    sequence: number,
    deleted: number,
    file: string,
  ])[];
  readonly deletes: readonly (readonly [sequence: number, file: string])[];
}

/** A run of at most this share of the next older one stays beside it; else they are joined. */
const JOIN_RATIO = 3;

const SCHEMA_VERSION = 1;

const TABLES = `
  CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS files (id INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, deleted INTEGER NOT NULL, file TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS deletes (key TEXT PRIMARY KEY, sequence INTEGER NOT NULL, file TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS runs (place INTEGER PRIMARY KEY, name TEXT NOT NULL);
`;

/** Deletion vectors are known by file and offset, delete files by path. */
export const deleteKey = (file: Pick<DataFile, 'filePath' | 'contentOffset'>): string =>
  file.contentOffset === undefined ? file.filePath : `${file.filePath}#${file.contentOffset}`;

export class KeyStore {
  readonly #db: DatabaseSync;
  readonly #runFiles: RunFiles;
  readonly #statements = new Map<string, StatementSync>();
  readonly #files = new Map<number, IndexedFile>();
  readonly #idByPath = new Map<string, number>();
  readonly #deletes = new Map<string, IndexedDelete>();
  /** Newest first. */
  #runs: Run[] = [];
  #nextFile = 1;
  #nextRun = 1;
  #snapshotId: string | undefined;
  #truncate: Stamp | undefined;
  #commitId = '';

  readonly identity: string;
  readonly #newOrigin: () => string;

  private constructor(
    db: DatabaseSync,
    runFiles: RunFiles,
    { identity, newOrigin }: { readonly identity: string; readonly newOrigin: () => string },
  ) {
    this.identity = identity;
    this.#newOrigin = newOrigin;
    this.#db = db;
    this.#runFiles = runFiles;
  }

  /**
   * Opens the index under `path` (`:memory:` for none on disk), empty when it is another table's or damaged.
   * What can't be read isn't an error: the index is built afresh from its table.
   */
  static open(
    path: string,
    runFiles: RunFiles,
    identity: IndexIdentity & { readonly newOrigin?: () => string },
  ): KeyStore {
    const db = new DatabaseSync(path);
    // Losing the last step to a power cut is fine, a torn file is not.
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
    db.exec(TABLES);
    const { tableUuid, idFields, topicId, generation, newOrigin = () => 'here' } = identity;
    const version = SCHEMA_VERSION;
    const wanted = JSON.stringify({ version, tableUuid, idFields, topicId, generation });
    const store = new KeyStore(db, runFiles, { identity: wanted, newOrigin });
    if (store.#state('identity') === wanted) store.#load();
    else store.reset();
    store.#setState('identity', wanted);
    return store;
  }

  close(): void {
    this.#db.close();
    this.#runFiles.close();
  }

  /** The snapshot it reflects; empty text for a table without one, undefined when nothing was built yet. */
  get snapshotId(): string | undefined {
    return this.#snapshotId;
  }

  get truncate(): Stamp | undefined {
    return this.#truncate;
  }

  /** Our own newest commit whose stamps are all in here; empty before the first. */
  get commitId(): string {
    return this.#commitId;
  }

  get files(): ReadonlyMap<number, IndexedFile> {
    return this.#files;
  }

  get deletes(): ReadonlyMap<string, IndexedDelete> {
    return this.#deletes;
  }

  get entryCount(): number {
    return this.#runs.reduce((sum, run) => sum + run.count, 0);
  }

  get runs(): readonly Run[] {
    return this.#runs;
  }

  fileByPath(path: string): IndexedFile | undefined {
    const id = this.#idByPath.get(path);
    return id === undefined ? undefined : this.#files.get(id);
  }

  /** A number for a data file, never given twice. */
  newFileId(): number {
    this.#nextFile += 1;
    return this.#nextFile - 1;
  }

  /** Whether entry `n` stands for a row that is there. */
  isLive(entries: EntryColumns, n: number): boolean {
    const file = entries.files[n]!;
    if (file === NO_FILE || !this.#files.has(file)) return false;
    const cut = this.#truncate;
    return cut === undefined || !stampBelow(entries, n, cut);
  }

  /** Forgets everything: it will be built from the table. */
  reset(): void {
    this.#transaction(() => {
      for (const table of ['files', 'deletes', 'runs']) this.#db.exec(`DELETE FROM ${table}`);
      this.#db.exec("DELETE FROM state WHERE name <> 'identity'");
      this.#setState('origin', this.#newOrigin());
    });
    for (const name of this.#runFiles.names()) this.#runFiles.remove(name);
    this.#files.clear();
    this.#idByPath.clear();
    this.#deletes.clear();
    this.#runs = [];
    this.#snapshotId = undefined;
    this.#truncate = undefined;
    this.#commitId = '';
    this.#nextFile = 1;
    this.#nextRun = 1;
  }

  /** All entries of the probes' keys; probes are sorted and distinct. */
  lookup(probes: Pick<EntryColumns, 'hashes' | 'count'>): LookupResult {
    const result = new LookupResult(probes.count);
    for (const run of this.#runs) {
      if (result.foundCount === probes.count) break;
      result.startRun();
      run.find(probes, result.wants, result.found);
    }
    for (const run of this.#runs) run.release();
    return result;
  }

  /** Every entry that counts as its key's, in the order of hashes. */
  scan(visit: (entries: EntryColumns, n: number) => void): void {
    mergeRuns(this.#runs, visit);
  }

  /** Moves to another snapshot, in one transaction. */
  apply(step: IndexStep): void {
    const { entries } = step;
    const name =
      entries !== undefined && entries.count > 0 ? this.#writeRun(encodeRun(entries)) : undefined;
    this.#transaction(() => {
      for (const id of step.filesGone ?? []) this.#run('DELETE FROM files WHERE id = ?', id);
      for (const { id, file, sequenceNumber, deleted } of step.files ?? []) {
        this.#run(
          'INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)',
          id,
          sequenceNumber,
          deleted,
          formatFile(file),
        );
      }
      for (const key of step.deletesGone ?? []) this.#run('DELETE FROM deletes WHERE key = ?', key);
      for (const { file, sequenceNumber } of step.deletes ?? []) {
        const key = deleteKey(file);
        this.#run(
          'INSERT OR REPLACE INTO deletes VALUES (?, ?, ?)',
          key,
          sequenceNumber,
          formatFile(file),
        );
      }
      if (name !== undefined) {
        this.#run('INSERT INTO runs SELECT coalesce(max(place), 0) + 1, ? FROM runs', name);
      }
      this.#setState('snapshot', step.snapshotId);
      if (step.commitId !== undefined) this.#setState('commit', step.commitId);
      this.#setState('next-file', String(this.#nextFile));
      this.#setState('next-run', String(this.#nextRun));
      const truncate = step.truncate ?? this.#truncate;
      if (truncate !== undefined) this.#setState('truncate', JSON.stringify(truncate));
    });
    this.#applied(step);
    if (name !== undefined) this.#runs.unshift(Run.open(this.#runFiles, name));
  }

  #applied(step: IndexStep): void {
    for (const id of step.filesGone ?? []) {
      const gone = this.#files.get(id);
      this.#files.delete(id);
      if (gone !== undefined && this.#idByPath.get(gone.file.filePath) === id)
        this.#idByPath.delete(gone.file.filePath);
    }
    for (const file of step.files ?? []) this.#add(file);
    for (const key of step.deletesGone ?? []) this.#deletes.delete(key);
    for (const one of step.deletes ?? []) this.#deletes.set(deleteKey(one.file), one);
    this.#snapshotId = step.snapshotId;
    this.#truncate = step.truncate ?? this.#truncate;
    this.#commitId = step.commitId ?? this.#commitId;
  }

  #add(file: IndexedFile): void {
    this.#files.set(file.id, file);
    this.#idByPath.set(file.file.filePath, file.id);
  }

  /**
   * Joins runs that have grown alike. Where the oldest takes part, entries that don't count any more go, but for
   * stamps above `floor`: changes that every partition has passed are of no use (K1).
   */
  join(floor: number): void {
    let take = 0;
    let sum = 0;
    for (const [n, run] of this.#runs.entries()) {
      if (n > 0 && sum * JOIN_RATIO >= run.count) take = n + 1;
      sum += run.count;
    }
    if (take > 1) this.#join(take, floor);
  }

  #join(take: number, floor: number): void {
    const joined = this.#runs.slice(0, take);
    const last = take === this.#runs.length;
    const builder = new RunBuilder();
    mergeRuns(joined, (entries, n) => {
      if (last && entries.commits[n]! <= floor && !this.isLive(entries, n)) return;
      builder.add(entries, n);
    });
    const name = builder.count === 0 ? undefined : this.#writeRun(builder.finish());
    const kept = this.#runs.slice(take);
    const fresh = name === undefined ? [] : [Run.open(this.#runFiles, name)];
    this.#transaction(() => {
      this.#db.exec('DELETE FROM runs');
      for (const [n, run] of [...fresh, ...kept].toReversed().entries())
        this.#run('INSERT INTO runs VALUES (?, ?)', n + 1, run.name);
      this.#setState('next-run', String(this.#nextRun));
    });
    this.#runs = [...fresh, ...kept];
    for (const run of joined) this.#runFiles.remove(run.name);
  }

  exportState(): IndexState {
    return {
      identity: this.identity,
      origin: this.#state('origin')!,
      snapshotId: this.#snapshotId ?? '',
      commitId: this.#commitId,
      nextFile: this.#nextFile,
      nextRun: this.#nextRun,
      truncate: this.#truncate,
      files: [...this.#files.values()].map(({ id, sequenceNumber, deleted, file }) => [
        id,
        sequenceNumber,
        deleted,
        formatFile(file),
      ]),
      deletes: [...this.#deletes.values()].map(({ sequenceNumber, file }) => [
        sequenceNumber,
        formatFile(file),
      ]),
    };
  }

  /** Fills an empty index. `runs`: bodies, newest first. @throws FloeError `corrupt`. */
  importState(state: IndexState, runs: readonly Uint8Array[]): void {
    this.reset();
    this.#nextFile = state.nextFile;
    this.#nextRun = state.nextRun;
    const names = runs.map((body) => this.#writeRun([body]));
    this.#runs = names.map((name) => Run.open(this.#runFiles, name));
    this.#transaction(() => {
      for (const [n, name] of names.toReversed().entries())
        this.#run('INSERT INTO runs VALUES (?, ?)', n + 1, name);
    });
    this.apply({
      snapshotId: state.snapshotId,
      commitId: state.commitId,
      truncate: state.truncate,
      files: state.files.map(([id, sequenceNumber, deleted, file]) => ({
        id,
        sequenceNumber,
        deleted,
        file: parseFile(file),
      })),
      deletes: state.deletes.map(([sequenceNumber, file]) => ({
        sequenceNumber,
        file: parseFile(file),
      })),
    });
  }

  runBytes(run: Run): Uint8Array {
    const bytes = new Uint8Array(run.bytes);
    this.#runFiles.read(run.name, bytes, 0);
    return bytes;
  }

  #writeRun(parts: readonly Uint8Array[]): string {
    const name = `${this.#nextRun}.run`;
    this.#nextRun += 1;
    this.#runFiles.write(name, parts);
    return name;
  }

  #load(): void {
    try {
      this.#snapshotId = this.#state('snapshot');
      if (this.#snapshotId === undefined) {
        this.reset();
        return;
      }
      this.#nextFile = Number(this.#state('next-file'));
      this.#nextRun = Number(this.#state('next-run'));
      this.#commitId = this.#state('commit') ?? '';
      const truncate = this.#state('truncate');
      this.#truncate = truncate === undefined ? undefined : (JSON.parse(truncate) as Stamp);
      for (const row of this.#db.prepare('SELECT * FROM files').iterate()) {
        this.#add({
          id: Number(row['id']),
          sequenceNumber: Number(row['sequence']),
          deleted: Number(row['deleted']),
          file: parseFile(String(row['file'])),
        });
      }
      for (const row of this.#db.prepare('SELECT * FROM deletes').iterate()) {
        this.#deletes.set(String(row['key']), {
          sequenceNumber: Number(row['sequence']),
          file: parseFile(String(row['file'])),
        });
      }
      const rows = this.#db.prepare('SELECT name FROM runs ORDER BY place DESC').all();
      this.#runs = rows.map((row) => Run.open(this.#runFiles, String(row['name'])));
      const known = new Set(this.#runs.map((run) => run.name));
      // Written, and never entered.
      for (const name of this.#runFiles.names()) if (!known.has(name)) this.#runFiles.remove(name);
    } catch (caught) {
      if (!(caught instanceof FloeError)) throw caught;
      this.reset();
    }
  }

  #state(name: string): string | undefined {
    const row = this.#prepared('SELECT value FROM state WHERE name = ?').get(name);
    return row === undefined ? undefined : String(row['value']);
  }

  #setState(name: string, value: string): void {
    this.#run('INSERT OR REPLACE INTO state VALUES (?, ?)', name, value);
  }

  #run(sql: string, ...values: (string | number)[]): void {
    this.#prepared(sql).run(...values);
  }

  #prepared(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #transaction(work: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#db.exec('COMMIT');
    } catch (caught) {
      this.#db.exec('ROLLBACK');
      throw caught;
    }
  }
}

/** Whether the stamp of entry `n` lies below `stamp`. */
export function stampBelow(entries: EntryColumns, n: number, stamp: Stamp): boolean {
  return (
    (entries.commits[n]! - stamp.commit ||
      entries.partitions[n]! - stamp.partition ||
      entries.offsets[n]! - stamp.offset) < 0
  );
}

/** Entries by probe: those of probe n are `[starts[n], starts[n] + sizes[n])` of `entries`. */
export class LookupResult {
  readonly entries = new Entries();
  readonly starts: Int32Array;
  readonly sizes: Int32Array;
  foundCount = 0;
  /** Probes found in runs before this one. */
  readonly #run: Int32Array;
  #runNumber = 0;

  constructor(count: number) {
    this.starts = new Int32Array(count);
    this.sizes = new Int32Array(count);
    this.#run = new Int32Array(count);
  }

  startRun(): void {
    this.#runNumber += 1;
  }

  readonly wants = (probe: number): boolean => {
    const run = this.#run[probe]!;
    return run === 0 || run === this.#runNumber;
  };

  readonly found = (probe: number, block: EntryColumns, entry: number): void => {
    if (this.sizes[probe] === 0) {
      this.starts[probe] = this.entries.count;
      this.#run[probe] = this.#runNumber;
      this.foundCount += 1;
    }
    this.sizes[probe]! += 1;
    this.entries.copy(block, entry);
  };
}

// Runs a query over the tables as they are committed: finds the tables it names, plans each (pruned by its WHERE),
// gives DuckDB views of exactly those files, and streams the rows.
import {
  type DuckDBDataChunk,
  type DuckDBResult,
  type DuckDBType,
  DuckDBTypeId,
} from '@duckdb/node-api';
import type { Clock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Values } from '../base/settings.ts';
import type { LoadedTable, TableIdentifier } from '../catalog/catalog.ts';
import {
  bindTableSpec,
  currentSchema,
  type FileReader,
  planScan,
} from '../formats/iceberg/index.ts';
import { deletedTable, hasDeletedRows, loadDeletedRows } from './deleted-rows.ts';
import { defineView, Engine, type Slot } from './engine.ts';
import type { FileAccess, NeededFile } from './file-access.ts';
import { predicateOf } from './filter.ts';
import { LayoutCache, needLayout } from './layout.ts';
import { ManifestCache } from './manifest-cache.ts';
import { resolveTable, type TableDirectory } from './resolve.ts';
import type { querySettings } from './settings.ts';
import {
  positionDetails,
  type Statement,
  StatementCache,
  type TableReference,
} from './statement.ts';
import { loadWithTail, placeTail, type Tail, type TailSource } from './tail.ts';
import { viewQuery } from './view.ts';

export interface QueryServiceOptions {
  readonly tables: TableDirectory;
  /** Loads a table; its metadata may be shared and must not be changed. */
  readonly loadTable: (identifier: TableIdentifier) => Promise<LoadedTable>;
  /** Reads manifests and deletion vectors. */
  readonly io: FileReader;
  readonly files: FileAccess;
  /** Rows of topics that aren't committed yet; without it queries see what is committed. */
  readonly tail?: TailSource;
  /** Where tails lie while they are read. */
  readonly tailFolder: string;
  readonly tempFolder: string;
  readonly settings: Values<typeof querySettings>;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

export interface QueryOptions {
  readonly signal?: AbortSignal;
  /** Which tables the asker may read; the others are neither read nor named. All, if not said. */
  readonly mayRead?: (table: TableIdentifier) => boolean;
  /** The result is made whole in DuckDB's memory before the first row: quicker to start, for answers sent as one. */
  readonly whole?: boolean;
}

export interface ResultColumn {
  readonly name: string;
  /** DuckDB's name of the type. */
  readonly type: string;
}

/** Rows as they come. Must be read to its end or closed. */
export interface QueryResult {
  readonly columns: readonly ResultColumn[];
  readonly types: readonly DuckDBType[];
  chunks(): AsyncIterable<DuckDBDataChunk>;
  close(): Promise<void>;
}

export class QueryService {
  readonly #options: QueryServiceOptions;
  readonly #manifests: ManifestCache;
  readonly #statements = new StatementCache();
  readonly #layouts = new LayoutCache();
  #engine: Promise<Engine> | undefined;

  constructor(options: QueryServiceOptions) {
    this.#options = options;
    this.#manifests = new ManifestCache(options.io, options.settings['sql.manifest.cache.entries']);
  }

  /**
   * Starts a query. It ends with the result's end or close, the time limit or `signal`.
   * @throws FloeError `invalid` (the query's fault, with `details.line` and `.column` where known), `timeout`,
   *   `cancelled`, `exhausted`, `unavailable`.
   */
  async query(text: string, options: QueryOptions = {}): Promise<QueryResult> {
    const { settings, clock } = this.#options;
    if (Buffer.byteLength(text) > settings['sql.max.query.bytes']) {
      throw new FloeError(
        'invalid',
        `the query is longer than ${settings['sql.max.query.bytes']} bytes (sql.max.query.bytes)`,
      );
    }
    const run = new Run(text, clock, settings['sql.timeout.ms'], options);
    try {
      const engine = await (this.#engine ??= this.#open());
      const slot = await engine.acquire(run.signal);
      run.onEnd(() => engine.release(slot));
      return await this.#start(run, slot, options.whole === true);
    } catch (caught) {
      await run.end();
      throw run.explain(caught);
    }
  }

  async stop(): Promise<void> {
    const engine = await this.#engine?.catch(() => undefined);
    this.#engine = undefined;
    engine?.close();
  }

  #open(): Promise<Engine> {
    const { settings, clock, files, tempFolder, tailFolder } = this.#options;
    const opening = Engine.open({
      settings,
      clock,
      folders: [...files.folders, tailFolder],
      tempFolder,
    });
    // A failed start is tried again by the next query.
    opening.catch(() => {
      this.#engine = undefined;
    });
    return opening;
  }

  async #start(run: Run, slot: Slot, whole: boolean): Promise<QueryResult> {
    run.interrupts(slot);
    const statement = await this.#statements.get(slot.connection, run.text);
    const text = statement.showsTables ? await this.#showTables(run, slot, statement) : run.text;
    let number = 0;
    for (const reference of statement.tables)
      await this.#prepare(run, slot, { reference, statement, number: number++ });
    run.signal.throwIfAborted();
    const { connection } = slot;
    return run.result(whole ? await connection.run(text) : await connection.stream(text));
  }

  /** Makes the view that a table name of the query stands for. */
  async #prepare(
    run: Run,
    slot: Slot,
    { reference, statement, number }: PrepareInput,
  ): Promise<void> {
    const { settings, tables } = this.#options;
    const found = await resolveTable(reference, tables, settings['sql.default.namespace']);
    if (found === undefined) {
      const isCte =
        reference.schema === '' && statement.cteNames.has(reference.table.toLowerCase());
      if (isCte) return;
      throw await this.#unknownTable(run, reference);
    }
    if (!run.mayRead(found)) {
      const shown = [...found.namespace, found.name].join('.');
      throw new FloeError('unauthorized', `reading table "${shown}" is not allowed`);
    }
    const { table, tail } = await loadWithTail(
      () => this.#options.loadTable(found),
      this.#options.tail,
      this.#options.clock,
    );
    const schema = currentSchema(table.metadata);
    const filter = predicateOf(reference.conditions, schema);
    const plan = await planScan({
      metadata: table.metadata,
      source: this.#manifests,
      ...(filter === undefined ? {} : { filter }),
    });
    const open = await this.#options.files.open(neededFiles(plan.files));
    run.onEnd(() => open.close());
    const placed = await placeTail(tail ?? NO_TAIL, this.#options.tailFolder);
    run.onEnd(() => placed.close());
    const { gone } = tail ?? NO_TAIL;
    const files = [...plan.files, ...placed.files];
    const { metadata } = table;
    const pathOf = (uri: string) => placed.pathOf(uri) ?? open.pathOf(uri);
    const deleted = files.some((file) => hasDeletedRows(file, gone))
      ? deletedTable(slot, number)
      : undefined;
    if (deleted !== undefined) {
      run.onEnd(() => slot.connection.run(`DROP TABLE IF EXISTS ${deleted.qualified}`));
      const { io } = this.#options;
      await loadDeletedRows(slot, { files, gone }, { io, pathOf, table: deleted });
    }
    const uncertain = needLayout(metadata, schema, files);
    const query = viewQuery({
      plan: { ...plan, files },
      gone,
      schemas: metadata.schemas,
      pathOf,
      deletedTable: deleted,
      layouts: await this.#layouts.get(slot.connection, uncertain, { pathOf, metadata }),
      specOf: (specId) => bindTableSpec(metadata, specId),
    });
    await defineView(slot, reference, query);
    this.#options.metrics.count(
      'floe_sql_files_total',
      'Data files that queries read, and those that planning left out',
      { what: 'read' },
      plan.files.length,
    );
    this.#options.metrics.count(
      'floe_sql_files_total',
      'Data files that queries read, and those that planning left out',
      { what: 'skipped' },
      plan.filesSkipped,
    );
  }

  async #unknownTable(run: Run, reference: TableReference): Promise<FloeError> {
    const shown = [reference.schema, reference.table].filter((part) => part !== '').join('.');
    const names = (await this.#options.tables.names()).filter(run.mayRead);
    const some = names.slice(0, 10).map((table) => [...table.namespace, table.name].join('.'));
    const remedy =
      some.length === 0
        ? 'the catalog has no tables yet'
        : `there are ${some.join(', ')}${names.length > some.length ? ', …' : ''}`;
    return new FloeError('invalid', `table "${shown}" does not exist: ${remedy}`, {
      details:
        reference.position === undefined ? {} : positionDetails(run.text, reference.position),
    });
  }

  /** `SHOW TABLES` lists the catalog's tables, not DuckDB's views. */
  async #showTables(run: Run, slot: Slot, statement: Statement): Promise<string> {
    if (statement.tables.length > 0)
      throw new FloeError(
        'invalid',
        'SHOW TABLES stands alone: it can be no part of another query',
      );
    const names = (await this.#options.tables.names()).filter(run.mayRead);
    const table = `"${slot.database}".main."__floe_tables"`;
    await slot.connection.run(`CREATE OR REPLACE TABLE ${table} (namespace VARCHAR, name VARCHAR)`);
    for (const { namespace, name } of names)
      await slot.connection.run(`INSERT INTO ${table} VALUES ($1, $2)`, [
        namespace.join('.'),
        name,
      ]);
    return `SELECT * FROM ${table} ORDER BY ALL`;
  }
}

const NO_TAIL: Tail = { files: [], gone: new Map() };

interface PrepareInput {
  readonly reference: TableReference;
  readonly statement: Statement;
  readonly number: number;
}

function neededFiles(files: Awaited<ReturnType<typeof planScan>>['files']): NeededFile[] {
  const needed = new Map<string, number>();
  for (const { file, positionDeletes, equalityDeletes } of files) {
    needed.set(file.filePath, file.fileSizeInBytes);
    for (const one of [...positionDeletes, ...equalityDeletes])
      if (one.file.fileFormat !== 'PUFFIN') needed.set(one.file.filePath, one.file.fileSizeInBytes);
  }
  return [...needed].map(([uri, bytes]) => ({ uri, bytes }));
}

/** One query's life: its limit, its cancellation, and what is to be given back at its end. */
class Run {
  readonly text: string;
  readonly #controller = new AbortController();
  readonly #timer: { cancel(): void };
  readonly #limitMs: number;
  readonly #ends: (() => unknown)[] = [];
  #timedOut = false;
  #ended = false;

  /** Which tables the asker may read. */
  readonly mayRead: (table: TableIdentifier) => boolean;

  constructor(text: string, clock: Clock, limitMs: number, options: QueryOptions) {
    const { signal, mayRead = () => true } = options;
    this.text = text;
    this.mayRead = mayRead;
    this.#limitMs = limitMs;
    this.#timer = clock.setTimer(limitMs, () => {
      this.#timedOut = true;
      this.#controller.abort(new FloeError('timeout', this.#limitText()));
    });
    const forward = () => this.#controller.abort(cancelled());
    if (signal?.aborted) forward();
    signal?.addEventListener('abort', forward, { once: true });
    this.onEnd(() => signal?.removeEventListener('abort', forward));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Called in reverse order when the query is over. */
  onEnd(give: () => unknown): void {
    this.#ends.push(give);
  }

  /** Stops what DuckDB is doing for this query when it is aborted. */
  interrupts(slot: Slot): void {
    const interrupt = () => slot.connection.interrupt();
    this.signal.addEventListener('abort', interrupt, { once: true });
    this.onEnd(() => this.signal.removeEventListener('abort', interrupt));
  }

  result(result: DuckDBResult): QueryResult {
    const types = result.columnTypes();
    const columns = result
      .columnNames()
      .map((name, index) => ({ name, type: typeName(types[index]!) }));
    return { columns, types, chunks: () => this.#chunks(result), close: () => this.end() };
  }

  async *#chunks(result: DuckDBResult): AsyncGenerator<DuckDBDataChunk> {
    try {
      for (;;) {
        this.signal.throwIfAborted();
        const chunk = await result.fetchChunk();
        if (chunk === null || chunk.rowCount === 0) return;
        yield chunk;
      }
    } catch (caught) {
      throw this.explain(caught);
    } finally {
      await this.end();
    }
  }

  async end(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#timer.cancel();
    for (const give of this.#ends.toReversed()) {
      try {
        await give();
      } catch {
        // Each gives back something of its own: one that fails must not keep the others.
      }
    }
  }

  /** DuckDB's errors in our codes; the sentence stays DuckDB's, which names the place. */
  explain(caught: unknown): FloeError {
    if (this.#timedOut) return new FloeError('timeout', this.#limitText(), { cause: caught });
    if (this.signal.aborted) return cancelled();
    if (caught instanceof FloeError) return caught;
    const text = caught instanceof Error ? caught.message : String(caught);
    if (/^Out of Memory Error/.test(text)) {
      return new FloeError('exhausted', `${text} (limits: sql.memory.bytes, sql.temp.bytes)`, {
        cause: caught,
      });
    }
    if (/^(IO Error|FATAL Error|INTERNAL Error|Permission Error)/.test(text))
      return new FloeError('internal', text, { cause: caught });
    return new FloeError('invalid', text, { cause: caught, details: caretPosition(text) });
  }

  #limitText(): string {
    return `the query ran longer than ${this.#limitMs} ms (sql.timeout.ms): add conditions on partition columns, or raise it`;
  }
}

const cancelled = () => new FloeError('cancelled', 'the query was cancelled');

/** DuckDB shows the line and a caret below the place. */
function caretPosition(message: string): { line?: number; column?: number } {
  const match = /^LINE (\d+): (.*)\n( *)\^/m.exec(message);
  if (match === null) return {};
  const prefix = `LINE ${match[1]}: `.length;
  return { line: Number(match[1]), column: Math.max(1, match[3]!.length - prefix + 1) };
}

function typeName(type: DuckDBType): string {
  // The alias that SQL users know for what DuckDB prints at length.
  return type.typeId === DuckDBTypeId.TIMESTAMP_TZ ? 'TIMESTAMPTZ' : type.toString();
}

// Reads a query as DuckDB's own parser does: is it one SELECT, which tables does it name, which table functions does
// it call, and what do its WHERE clauses say about single tables. Nothing is parsed by hand; DuckDB gives the tree.
// Not for: what the names mean (resolve.ts).
import type { DuckDBConnection } from '@duckdb/node-api';
import { FloeError } from '../base/error.ts';
import { parseIcebergJson } from '../formats/iceberg/index.ts';

export type Node = Readonly<Record<string, unknown>>;

/** A table as the query names it. */
export interface TableReference {
  /** Schema part, '' for a bare name. */
  readonly schema: string;
  readonly table: string;
  /** Character of the query where it stands. */
  readonly position: number | undefined;
  /** Conditions of a WHERE clause over this table that every used row fulfils; empty when there are none. */
  readonly conditions: readonly Condition[];
}

/** An expression, and how its columns are qualified: by the alias, and not at all when the table stands alone. */
export interface Condition {
  readonly expression: Node;
  readonly alias: string;
  readonly alone: boolean;
}

export interface Statement {
  readonly tables: readonly TableReference[];
  /** Names that the query defines itself. */
  readonly cteNames: ReadonlySet<string>;
  /** `SHOW TABLES` and its kin. */
  readonly showsTables: boolean;
}

/**
 * Table functions that a query may call: those that make rows from their arguments. Everything that reads files, settings
 * or other queries' text stays out.
 */
const TABLE_FUNCTIONS: ReadonlySet<string> = new Set([
  'range',
  'generate_series',
  'unnest',
  'repeat',
  'repeat_row',
  'json_each',
  'json_tree',
  'summary',
]);

/** Nesting of a query's tree; DuckDB itself stops at 1,000 expressions. */
const MAX_DEPTH = 4_000;

/** @throws FloeError `invalid` for anything but one SELECT over tables. */
async function parseStatement(connection: DuckDBConnection, query: string): Promise<Statement> {
  const reader = await connection.runAndReadAll(
    'SELECT json_serialize_sql($1::VARCHAR, skip_null := true, skip_empty := true)',
    [query],
  );
  const tree = parseIcebergJson(String(reader.getRows()[0]![0])) as Node;
  if (tree['error'] === true) throw syntaxError(tree, query);
  const statements = tree['statements'] as readonly Node[] | undefined;
  if (statements?.length !== 1) {
    throw new FloeError(
      'invalid',
      `one SELECT at a time: the query has ${statements?.length ?? 0}`,
    );
  }
  const found = new Collector();
  found.visit(statements[0]!['node'], 0);
  return found.statement();
}

/** Parsed queries kept; dashboards send the same few again and again. */
const CACHED_STATEMENTS = 256;

/** What was parsed lately, by text. Parsing needs no table, so nothing in it goes stale. */
export class StatementCache {
  readonly #kept = new Map<string, Statement>();

  async get(connection: DuckDBConnection, query: string): Promise<Statement> {
    const kept = this.#kept.get(query);
    if (kept !== undefined) return kept;
    const statement = await parseStatement(connection, query);
    if (query.length > MAX_CACHED_LENGTH) return statement;
    if (this.#kept.size >= CACHED_STATEMENTS) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.set(query, statement);
    return statement;
  }
}

/** Longer queries are parsed each time: they are rarely sent twice. */
const MAX_CACHED_LENGTH = 16 * 1024;

function syntaxError(tree: Node, query: string): FloeError {
  if (tree['error_type'] === 'not implemented') {
    return new FloeError(
      'invalid',
      'only SELECT is served here (also WITH, VALUES, DESCRIBE, SUMMARIZE, SHOW TABLES): tables are written through their topics',
    );
  }
  const position = Number(tree['position'] ?? Number.NaN);
  return new FloeError('invalid', String(tree['error_message']), {
    details: Number.isInteger(position) ? positionDetails(query, position) : {},
  });
}

/** Line and column, from 1, of a byte offset that DuckDB reports. */
export function positionDetails(query: string, byteOffset: number) {
  const before = Buffer.from(query).subarray(0, byteOffset).toString('utf8');
  const line = before.split('\n').length;
  return { line, column: before.length - before.lastIndexOf('\n') };
}

interface MutableReference {
  readonly schema: string;
  readonly table: string;
  readonly position: number | undefined;
  conditions: Condition[];
  count: number;
}

class Collector {
  readonly #tables = new Map<string, MutableReference>();
  readonly #cteNames = new Set<string>();
  #showsTables = false;

  statement(): Statement {
    return {
      tables: [...this.#tables.values()].map(({ count, conditions, ...table }) => ({
        ...table,
        // A table that is read twice is read by one view: what one place rules out the other may need.
        conditions: count === 1 ? conditions : [],
      })),
      cteNames: this.#cteNames,
      showsTables: this.#showsTables,
    };
  }

  visit(value: unknown, depth: number): void {
    if (typeof value !== 'object' || value === null) return;
    if (depth > MAX_DEPTH) throw new FloeError('invalid', 'the query is nested too deeply');
    if (Array.isArray(value)) {
      for (const item of value) this.visit(item, depth + 1);
      return;
    }
    const node = value as Node;
    switch (node['type']) {
      case 'BASE_TABLE':
        this.#table(node);
        break;
      case 'TABLE_FUNCTION':
        checkTableFunction(node);
        break;
      case 'SHOW_REF':
        if (node['query'] === undefined) this.#showsTables = true;
        break;
      default:
    }
    this.#names(node);
    for (const child of Object.values(node)) this.visit(child, depth + 1);
    // After its children: the tables of FROM are known then.
    if (node['type'] === 'SELECT_NODE') this.#conditions(node);
  }

  #names(node: Node): void {
    const map = (node['cte_map'] as Node | undefined)?.['map'];
    if (Array.isArray(map))
      for (const entry of map as Node[]) this.#cteNames.add(String(entry['key']).toLowerCase());
    const own = node['cte_name'] ?? node['ctename'];
    if (typeof own === 'string') this.#cteNames.add(own.toLowerCase());
  }

  #table(node: Node): void {
    if (node['at_clause'] !== undefined)
      throw new FloeError(
        'invalid',
        'AT (VERSION …) is not served: tables are read as they are now',
      );
    const catalog = node['catalog_name'];
    if (typeof catalog === 'string' && catalog !== '') {
      throw new FloeError(
        'invalid',
        `"${catalog}" before the namespace is not served: name a table as namespace.table, nested namespaces as "a.b".table`,
      );
    }
    const schema = String(node['schema_name'] ?? '');
    const table = String(node['table_name']);
    const key = referenceKey(schema, table);
    const present = this.#tables.get(key);
    if (present !== undefined) {
      present.count += 1;
      return;
    }
    const position = node['query_location'];
    this.#tables.set(key, {
      schema,
      table,
      position: typeof position === 'number' ? position : undefined,
      conditions: [],
      count: 1,
    });
  }

  #conditions(node: Node): void {
    const where = node['where_clause'] as Node | undefined;
    if (where === undefined) return;
    const tables = tablesOf(node['from_table'] as Node | undefined);
    for (const table of tables ?? []) {
      const name = String(table['table_name']);
      const reference = this.#tables.get(referenceKey(String(table['schema_name'] ?? ''), name));
      // A sample of fewer files would be another sample.
      if (reference === undefined || table['sample'] !== undefined) continue;
      reference.conditions.push({
        expression: where,
        alias: String(table['alias'] ?? name),
        alone: tables!.length === 1,
      });
    }
  }
}

const referenceKey = (schema: string, table: string) => JSON.stringify([schema, table]);

function checkTableFunction(node: Node): void {
  const name = String((node['function'] as Node | undefined)?.['function_name']).toLowerCase();
  if (TABLE_FUNCTIONS.has(name)) return;
  throw new FloeError(
    'invalid',
    `table function ${name}() is not served: a query reads the tables of this catalog and nothing else`,
  );
}

/**
 * Base tables of a FROM clause for which "WHERE holds" rules rows out one by one. Undefined where leaving rows out of
 * one side changes what the other side is joined with (ASOF, POSITIONAL).
 */
function tablesOf(from: Node | undefined): Node[] | undefined {
  if (from === undefined) return [];
  if (from['type'] === 'BASE_TABLE') return [from];
  if (from['type'] !== 'JOIN') return [];
  const kind = from['ref_type'] ?? 'REGULAR';
  if (kind !== 'REGULAR' && kind !== 'CROSS' && kind !== 'NATURAL') return undefined;
  const left = tablesOf(from['left'] as Node);
  const right = tablesOf(from['right'] as Node);
  if (left === undefined || right === undefined) return undefined;
  // Anything else in FROM (a subquery, a function) may own unqualified names too.
  const others = [from['left'], from['right']].filter(
    (side) => !['BASE_TABLE', 'JOIN'].includes(String((side as Node)['type'])),
  );
  return [...left, ...right, ...others.map(() => ({ table_name: '' }))];
}

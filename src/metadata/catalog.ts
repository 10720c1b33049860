// The catalog's pointers: namespaces with properties, and for each table the metadata file that is its present state.
// What is in those files is the catalog's business (catalog/); here a pointer only moves when it is where the
// mover saw it. A namespace is its levels joined by U+001F, which no level may contain.

/** Levels joined by {@link LEVEL_SEPARATOR}; '' is the root, which holds namespaces but no tables. */
export type NamespaceKey = string;

export const LEVEL_SEPARATOR = '\u001f';

export interface TablePointer {
  readonly namespace: NamespaceKey;
  readonly name: string;
  /** Absolute URI of the table's current metadata file. */
  readonly metadataLocation: string;
}

export interface PointerMove {
  readonly namespace: NamespaceKey;
  readonly name: string;
  /** Where the pointer was seen; undefined for a table that doesn't exist yet. */
  readonly from: string | undefined;
  readonly to: string;
}

/** A page: entries after `after` in ascending order of bytes, at most `limit`. */
export interface PageRequest {
  readonly after?: string;
  readonly limit?: number;
}

export interface PropertyChanges {
  readonly updates: Readonly<Record<string, string>>;
  readonly removals: readonly string[];
}

/**
 * Errors carry `details.thing` (`namespace` or `table`). `not-found`: it isn't there. `conflict`: it is there already,
 * isn't empty (`details.reason` = `not-empty`), or a pointer has moved (`details.reason` = `moved`).
 */
export interface CatalogMetadata {
  /** The parent must exist. */
  createNamespace(
    namespace: NamespaceKey,
    properties: Readonly<Record<string, string>>,
  ): Promise<void>;
  /** Undefined when there is none. */
  namespaceProperties(
    namespace: NamespaceKey,
  ): Promise<Readonly<Record<string, string>> | undefined>;
  /** Children of `parent`, one level down. */
  listNamespaces(parent: NamespaceKey, page?: PageRequest): Promise<readonly NamespaceKey[]>;
  /** Returns the removals that weren't there. */
  alterNamespace(namespace: NamespaceKey, changes: PropertyChanges): Promise<readonly string[]>;
  /** Refused while it holds tables or namespaces. */
  dropNamespace(namespace: NamespaceKey): Promise<void>;
  /** Undefined when there is none. */
  table(namespace: NamespaceKey, name: string): Promise<TablePointer | undefined>;
  listTables(namespace: NamespaceKey, page?: PageRequest): Promise<readonly string[]>;
  /** Moves all pointers or none, in one transaction. */
  moveTables(moves: readonly PointerMove[]): Promise<void>;
  renameTable(from: TableName, to: TableName): Promise<void>;
  /** Returns what was dropped. */
  dropTable(namespace: NamespaceKey, name: string): Promise<TablePointer>;
}

export interface TableName {
  readonly namespace: NamespaceKey;
  readonly name: string;
}

// A catalog as table topics and queries use it. The embedded one, an external REST catalog (rest/) and AWS Glue (glue/)
// implement it and pass `contract.ts`.
import type { PartitionSpec, Schema, SortOrder, TableMetadata } from '../formats/iceberg/types.ts';

export interface TableIdentifier {
  readonly namespace: readonly string[];
  readonly name: string;
}

export interface LoadedTable {
  readonly identifier: TableIdentifier;
  readonly metadata: TableMetadata;
  readonly metadataLocation: string;
}

export interface CreateTableRequest {
  readonly name: string;
  readonly location?: string;
  readonly schema: Schema;
  readonly partitionSpec?: PartitionSpec;
  readonly writeOrder?: SortOrder;
  readonly properties?: Readonly<Record<string, string>>;
}

/** What is known of a table when its topic is configured. */
export interface ProposedTable {
  readonly identifier: TableIdentifier;
  /** Full names of the columns that partition it. */
  readonly partitionSources: readonly string[];
}

/** A requirement or an update in the JSON shape of the REST catalog's OpenAPI (TableRequirement, TableUpdate). */
export type TableRequirement = { readonly type: string } & Readonly<Record<string, unknown>>;
export type TableUpdate = { readonly action: string } & Readonly<Record<string, unknown>>;

export interface CommitTableRequest {
  readonly requirements: readonly TableRequirement[];
  readonly updates: readonly TableUpdate[];
}

/**
 * Errors: `not-found`, `conflict` (exists already, or a requirement failed: provably not applied),
 * `invalid` (provably not applied), `unavailable` or `timeout` (outcome unknown).
 */
export interface Catalog {
  /** Creates the namespace when it is missing. */
  ensureNamespace(
    namespace: readonly string[],
    properties?: Readonly<Record<string, string>>,
  ): Promise<void>;
  /** Namespaces directly below `parent`; [] for the top. */
  listNamespaces(parent: readonly string[]): Promise<readonly (readonly string[])[]>;
  listTables(namespace: readonly string[]): Promise<readonly TableIdentifier[]>;
  tableExists(identifier: TableIdentifier): Promise<boolean>;
  loadTable(identifier: TableIdentifier): Promise<LoadedTable>;
  createTable(namespace: readonly string[], request: CreateTableRequest): Promise<LoadedTable>;
  commitTable(identifier: TableIdentifier, request: CommitTableRequest): Promise<LoadedTable>;
  /**
   * Keeps the table and gives it another name. Missing where a catalog has no such thing.
   * @throws FloeError `conflict` when the name is taken.
   */
  renameTable?(from: TableIdentifier, to: TableIdentifier): Promise<void>;
  dropTable(identifier: TableIdentifier, options: { readonly purge: boolean }): Promise<void>;
  /**
   * Looks at what a table would be called and partitioned by before anybody asks for it; asks nobody.
   * @throws FloeError `invalid` naming what this kind of catalog can't take, and the remedy.
   */
  checkTable(table: ProposedTable): void;
}

// A catalog as table topics and queries use it. The embedded one (catalog/index.ts) implements it directly;
// an external REST catalog and Glue will implement the same and pass `contract.ts`.
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
  listTables(namespace: readonly string[]): Promise<readonly TableIdentifier[]>;
  loadTable(identifier: TableIdentifier): Promise<LoadedTable>;
  createTable(namespace: readonly string[], request: CreateTableRequest): Promise<LoadedTable>;
  commitTable(identifier: TableIdentifier, request: CommitTableRequest): Promise<LoadedTable>;
  dropTable(identifier: TableIdentifier, options: { readonly purge: boolean }): Promise<void>;
}

// Moving a metadata store to another: from one node's SQLite to a cluster's PostgreSQL.
export { type ComparedTable, compareRows, copyRows, type TransferSource } from './copy.ts';
export {
  DOUBTED,
  type RowsOf,
  readSnapshot,
  type SnapshotFacts,
  writeSnapshot,
} from './snapshot.ts';
export { transferTables } from './tables.ts';

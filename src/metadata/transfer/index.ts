// Moving a metadata store to another: from one node's SQLite to a cluster's PostgreSQL, and to a backup and back.
export { compareRows, copyRows, type TransferSource } from './copy.ts';
export {
  noteRecovered,
  RESTORED,
  readSnapshot,
  SKIPPED_IDS,
  type SnapshotFacts,
  writeSnapshot,
} from './snapshot.ts';

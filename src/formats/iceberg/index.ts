// Apache Iceberg tables as data: bytes in, values out. Formats v1 and v2 whole, v3 as far as listed in types.ts.
//
// To append:   prepareAppend({ metadata, io, snapshotId, commitUuid, nowMs, added, summary }) gives `objects` to write,
//              then `requirements` and `updates` for Catalog.commitTable. After a conflict: reload, prepare afresh (T4).
// To read:     planScan({ metadata, source: manifestSource(io), filter }) gives data files with the deletes that apply to each.
// To build a DataFile: values and partition tuples in the form that types.ts documents at PartitionValue;
//              bounds by encodeSingleValue; tuples by bindTableSpec(metadata, specId).fields[i].apply(sourceValue);
//              folder by dataFolder(metadata) + '/' + partitionPath(spec, partition).
// Schemas:     findField(schema, 'a.b' | id), assignFreshIds, isPromotionAllowed, sameType; a catalog may assign other
//              ids than asked for: take them from the table it returns (T10).
export * from './commit.ts';
export { readDeletionVector } from './deletion-vector.ts';
export * from './history.ts';
export * from './json.ts';
export {
  type ManifestEntry,
  readManifest,
  STATUS_ADDED,
  STATUS_DELETED,
  STATUS_EXISTING,
  writeManifest,
} from './manifest.ts';
export { type ManifestFile, readManifestList, writeManifestList } from './manifest-list.ts';
export { LAST_ADDED, type NewTable, newTableMetadata } from './metadata-builder.ts';
export * from './metadata-update.ts';
export * from './partition.ts';
export type { CompareOperator, Predicate } from './predicate.ts';
export * from './primitive.ts';
export * from './projection.ts';
export { checkRequirements } from './requirements.ts';
export * from './scan.ts';
export * from './schema.ts';
export * from './shapes.ts';
export { type Summary, type Totals, totalsFromSummary, totalsOf } from './summary.ts';
export { type FileReader, manifestsOf, readManifests } from './table-files.ts';
export * from './transform.ts';
export * from './types.ts';
export * from './value.ts';
export * from './view-metadata.ts';

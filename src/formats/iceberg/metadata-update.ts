// TableUpdates of a commit → new metadata. One handler per action; an unknown action is refused.
// Also the metadata log: which earlier metadata files a table remembers. Source: REST OpenAPI, TableUpdate.
import { FloeError } from '../../base/error.ts';
import { MetadataBuilder } from './metadata-builder.ts';
import {
  asInt,
  asList,
  asObject,
  asPartitionFields,
  asSchema,
  asSnapshot,
  asSnapshotId,
  asSortFields,
  asText,
  asTextMap,
  type Json,
} from './shapes.ts';
import type { SnapshotRef, TableMetadata } from './types.ts';

type Apply = (builder: MetadataBuilder, update: Json) => void;

const ints = (value: unknown, what: string) => asList(value, what).map((id) => asInt(id, what));

const HANDLERS: Readonly<Record<string, Apply>> = {
  'assign-uuid': (builder, { uuid }) => builder.assignUuid(asText(uuid, 'uuid')),
  'upgrade-format-version': (builder, update) =>
    builder.upgradeFormatVersion(asInt(update['format-version'], 'format-version')),
  // Of clients from before v3 was settled: every table of v3 has row lineage.
  'enable-row-lineage': (builder) => builder.requireRowLineage(),
  'add-schema': (builder, update) => {
    const last = update['last-column-id'];
    builder.addSchema(
      asSchema(update['schema']),
      last === undefined || last === null ? undefined : asInt(last, 'last-column-id'),
    );
  },
  'set-current-schema': (builder, update) =>
    builder.setCurrentSchema(asInt(update['schema-id'], 'schema-id')),
  'remove-schemas': (builder, update) =>
    builder.removeSchemas(ints(update['schema-ids'], 'schema-ids')),
  'add-spec': (builder, { spec }) => builder.addSpec(asPartitionFields(spec)),
  'set-default-spec': (builder, update) =>
    builder.setDefaultSpec(asInt(update['spec-id'], 'spec-id')),
  'remove-partition-specs': (builder, update) =>
    builder.removeSpecs(ints(update['spec-ids'], 'spec-ids')),
  'add-sort-order': (builder, update) => builder.addSortOrder(asSortFields(update['sort-order'])),
  'set-default-sort-order': (builder, update) =>
    builder.setDefaultSortOrder(asInt(update['sort-order-id'], 'sort-order-id')),
  'add-snapshot': (builder, { snapshot }) => builder.addSnapshot(asSnapshot(snapshot)),
  'set-snapshot-ref': (builder, update) =>
    builder.setRef(asText(update['ref-name'], 'ref-name'), asRef(update)),
  'remove-snapshot-ref': (builder, update) =>
    builder.removeRef(asText(update['ref-name'], 'ref-name')),
  'remove-snapshots': (builder, update) =>
    builder.removeSnapshots(
      asList(update['snapshot-ids'], 'snapshot-ids').map((id) => asSnapshotId(id, 'snapshot-ids')),
    ),
  'set-location': (builder, { location }) => builder.setLocation(asText(location, 'location')),
  'set-properties': (builder, update) =>
    builder.setProperties(asTextMap(update['updates'] ?? update['updated'], 'updates')),
  'remove-properties': (builder, update) =>
    builder.removeProperties(
      asList(update['removals'] ?? update['removed'], 'removals').map((name) =>
        asText(name, 'removals'),
      ),
    ),
  'set-statistics': (builder, { statistics }) =>
    builder.setStatistics('statistics', asStatistics(statistics)),
  'remove-statistics': (builder, update) =>
    builder.removeStatistics('statistics', asSnapshotId(update['snapshot-id'], 'snapshot-id')),
  'set-partition-statistics': (builder, update) =>
    builder.setStatistics('partition-statistics', asStatistics(update['partition-statistics'])),
  'remove-partition-statistics': (builder, update) =>
    builder.removeStatistics(
      'partition-statistics',
      asSnapshotId(update['snapshot-id'], 'snapshot-id'),
    ),
  'add-encryption-key': (builder, update) => {
    const key = asObject(update['encryption-key'], 'encryption-key');
    builder.setEncryptionKey({ ...key, 'key-id': asText(key['key-id'], 'key-id') });
  },
  'remove-encryption-key': (builder, update) =>
    builder.removeEncryptionKey(asText(update['key-id'], 'key-id')),
};

function asRef(update: Json): SnapshotRef {
  const type = update['type'];
  if (type !== 'branch' && type !== 'tag')
    throw new FloeError('invalid', `a ref is a "branch" or a "tag", not ${String(type)}`);
  const retention = (key: string) =>
    update[key] === undefined || update[key] === null ? {} : { [key]: asInt(update[key], key) };
  return {
    'snapshot-id': asSnapshotId(update['snapshot-id'], 'snapshot-id'),
    type,
    ...retention('min-snapshots-to-keep'),
    ...retention('max-snapshot-age-ms'),
    ...retention('max-ref-age-ms'),
  };
}

function asStatistics(value: unknown): Json & { readonly 'snapshot-id': bigint } {
  const statistics = asObject(value, 'statistics');
  asText(statistics['statistics-path'], 'statistics-path');
  return { ...statistics, 'snapshot-id': asSnapshotId(statistics['snapshot-id'], 'snapshot-id') };
}

/**
 * Applies updates in order.
 * @param base undefined for a table that these updates create.
 * @throws FloeError `invalid` (unknown or impossible), `conflict` (true of an older state of the table only).
 */
export function applyUpdates(
  base: TableMetadata | undefined,
  updates: readonly Json[],
  nowMs: number,
): TableMetadata {
  const builder = new MetadataBuilder(base, nowMs);
  for (const update of updates) {
    const action = asText(update['action'], 'action of an update');
    if (!Object.hasOwn(HANDLERS, action))
      throw new FloeError('invalid', `unknown update "${action}"`);
    HANDLERS[action]!(builder, update);
  }
  return builder.build();
}

const DEFAULT_PREVIOUS_VERSIONS = 100;

export interface LoggedMetadata {
  readonly metadata: TableMetadata;
  /** Metadata files that fell out of the log; to be deleted where `write.metadata.delete-after-commit.enabled`. */
  readonly forgotten: readonly string[];
}

/** Adds the file that `next` replaces to its log, and trims the log to `write.metadata.previous-versions-max`. */
export function logPreviousMetadata(
  next: TableMetadata,
  previous: { readonly metadata: TableMetadata; readonly location: string },
): LoggedMetadata {
  const property = Number(next.properties?.['write.metadata.previous-versions-max']);
  const limit = Number.isInteger(property) && property >= 1 ? property : DEFAULT_PREVIOUS_VERSIONS;
  const log = [
    ...(next['metadata-log'] ?? []),
    {
      'timestamp-ms': previous.metadata['last-updated-ms'],
      'metadata-file': previous.location,
    },
  ];
  const cut = Math.max(0, log.length - limit);
  return {
    metadata: { ...next, 'metadata-log': log.slice(cut) },
    forgotten: log.slice(0, cut).map((entry) => entry['metadata-file']),
  };
}

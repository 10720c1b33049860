// Makes a table what its topic's config asks for: partition spec, sort order, format version, properties. Files
// already written keep the spec and the order they were written with.
// Not for: columns (evolve.ts), the table's life (catalog-table.ts).
import { FloeError, isFloeError } from '../base/error.ts';
import type {
  Catalog,
  LoadedTable,
  TableIdentifier,
  TableRequirement,
  TableUpdate,
} from '../catalog/catalog.ts';
import { currentSchema, mappingProperty } from '../formats/iceberg/index.ts';
import type { PartitionField, Schema, SortField, TableMetadata } from '../formats/iceberg/types.ts';
import type { ColumnPath } from './column-list.ts';
import {
  formatPartitionBy,
  formatSortBy,
  type PartitionExpression,
  type SortExpression,
} from './column-list.ts';
import { type RenameRule, renameColumns } from './column-selection.ts';
import { fieldMapOf } from './field-map.ts';
import {
  buildPartitionFields,
  buildSortFields,
  sameSortFields,
  sameSpec,
} from './partition-spec.ts';
import { IDENTIFIERS_PROPERTY, withoutOtherIdentifiers } from './upsert/identifiers.ts';

/** The names of the properties that the topic's config set last, as JSON: what it doesn't set any more goes. */
export const CONFIGURED_PROPERTY = 'floe.configured-properties';

/**
 * Partitions and sort order as the config said them last, as JSON. They are applied when the config changes, so what
 * somebody else made of the table stays until then, and an adopted table keeps its own.
 */
export const CONFIGURED_LAYOUT = 'floe.configured-layout';

/** Rounds that may be lost to other writers before it is given up for now. */
const ATTEMPTS = 5;

/**
 * Properties that every table of ours starts with. Isolation `snapshot`: with the default, `serializable`, the
 * UPDATEs of other engines would lose against each of our appends. Old metadata files go: a commit per interval
 * would leave 8,640 of them a day.
 */
export const TABLE_PROPERTIES: Readonly<Record<string, string>> = {
  'write.delete.isolation-level': 'snapshot',
  'write.update.isolation-level': 'snapshot',
  'write.merge.isolation-level': 'snapshot',
  'write.metadata.delete-after-commit.enabled': 'true',
  'write.metadata.previous-versions-max': '100',
  'commit.retry.num-retries': '20',
  'write.parquet.compression-codec': 'zstd',
};

export interface WantedLayout {
  readonly partitionBy: readonly PartitionExpression[];
  readonly sortBy: readonly SortExpression[];
  /** Columns that are there already take these names. */
  readonly renames: readonly RenameRule[];
  readonly formatVersion: number;
  /** Columns that make a row, of an upsert table. */
  readonly identifiers: readonly ColumnPath[];
  /** Without Floe's own. */
  readonly properties: Readonly<Record<string, string>>;
}

/**
 * Changes what differs, in one commit; does nothing when nothing does.
 * @throws FloeError `invalid` naming the column or transform that doesn't fit, and what the catalog throws.
 */
export async function conformTable(
  catalog: Catalog,
  loaded: LoadedTable,
  wanted: WantedLayout,
): Promise<LoadedTable> {
  let table = loaded;
  for (let attempt = 1; ; attempt += 1) {
    const changes = layoutChanges(table.metadata, wanted);
    if (changes.updates.length === 0) return table;
    try {
      return await catalog.commitTable(table.identifier, changes);
    } catch (caught) {
      if (!isFloeError(caught, 'conflict') || attempt >= ATTEMPTS) throw caught;
      table = await reload(catalog, table.identifier, table.metadata['table-uuid']);
    }
  }
}

async function reload(
  catalog: Catalog,
  identifier: TableIdentifier,
  uuid: string,
): Promise<LoadedTable> {
  const table = await catalog.loadTable(identifier);
  if (table.metadata['table-uuid'] === uuid) return table;
  throw new FloeError('conflict', `T3: ${identifier.name} is another table now`, {
    details: { replaced: true },
  });
}

interface Changes {
  readonly requirements: readonly TableRequirement[];
  readonly updates: readonly TableUpdate[];
}

/** Requirements and updates that make `metadata` what is wanted. */
export function layoutChanges(metadata: TableMetadata, wanted: WantedLayout): Changes {
  const properties = metadata.properties ?? {};
  const before = configuredLayout(properties);
  const now = layoutTexts(wanted);
  const renamed = renameColumns(currentSchema(metadata), fieldMapOf(metadata), wanted.renames);
  const schema =
    properties[IDENTIFIERS_PROPERTY] === undefined
      ? renamed
      : withoutOtherIdentifiers(renamed, wanted.identifiers);
  const parts = [
    versionChange(metadata, wanted.formatVersion),
    schemaChange(metadata, schema),
    before.partitionBy === now.partitionBy
      ? NOTHING
      : specChange(metadata, schema, wanted.partitionBy),
    before.sortBy === now.sortBy ? NOTHING : orderChange(metadata, schema, wanted.sortBy),
    propertyChange(properties, wanted.properties),
    layoutNote(properties, now),
  ];
  const uuid = { type: 'assert-table-uuid', uuid: metadata['table-uuid'] };
  return {
    requirements: [uuid, ...parts.flatMap((part) => part.requirements)],
    updates: parts.flatMap((part) => part.updates),
  };
}

const NOTHING: Changes = { requirements: [], updates: [] };

interface LayoutTexts {
  readonly partitionBy: string;
  readonly sortBy: string;
}

const layoutTexts = ({ partitionBy, sortBy }: WantedLayout): LayoutTexts => ({
  partitionBy: formatPartitionBy(partitionBy),
  sortBy: formatSortBy(sortBy),
});

const NO_LAYOUT: LayoutTexts = { partitionBy: '', sortBy: '' };

function configuredLayout(properties: Readonly<Record<string, string>>): LayoutTexts {
  try {
    return { ...NO_LAYOUT, ...JSON.parse(properties[CONFIGURED_LAYOUT] ?? '{}') };
  } catch {
    // Somebody's edit: the config is applied again.
    return NO_LAYOUT;
  }
}

function layoutNote(present: Readonly<Record<string, string>>, now: LayoutTexts): Changes {
  const text = JSON.stringify(now);
  const known = present[CONFIGURED_LAYOUT] ?? JSON.stringify(NO_LAYOUT);
  if (known === text) return NOTHING;
  const updates = { [CONFIGURED_LAYOUT]: text };
  return { requirements: [], updates: [{ action: 'set-properties', updates }] };
}

/** A table never goes back: a lower version asks for nothing. */
function versionChange(metadata: TableMetadata, version: number): Changes {
  if (metadata['format-version'] >= version) return NOTHING;
  const update = { action: 'upgrade-format-version', 'format-version': version };
  return { requirements: [], updates: [update] };
}

/** T3: a schema change asserts the schema and the last field id. */
function schemaChange(metadata: TableMetadata, schema: Schema): Changes {
  if (schema === currentSchema(metadata)) return NOTHING;
  const current = metadata['current-schema-id'];
  const last = metadata['last-column-id'];
  const mapping = mappingProperty(metadata, schema);
  return {
    requirements: [
      { type: 'assert-current-schema-id', 'current-schema-id': current },
      { type: 'assert-last-assigned-field-id', 'last-assigned-field-id': last },
    ],
    updates: [
      { action: 'add-schema', schema, 'last-column-id': last },
      { action: 'set-current-schema', 'schema-id': -1 },
      ...(Object.keys(mapping).length === 0
        ? []
        : [{ action: 'set-properties', updates: mapping }]),
    ],
  };
}

function specChange(
  metadata: TableMetadata,
  schema: Schema,
  expressions: readonly PartitionExpression[],
): Changes {
  const specs = metadata['partition-specs'];
  const fields: readonly PartitionField[] = buildPartitionFields(expressions, schema, {
    specs,
    lastPartitionId: metadata['last-partition-id'],
  });
  const present = specs.find((spec) => spec['spec-id'] === metadata['default-spec-id'])!;
  if (sameSpec(present, fields)) return NOTHING;
  const known = specs.find((spec) => sameSpec(spec, fields));
  const specId = known?.['spec-id'] ?? Math.max(...specs.map((spec) => spec['spec-id'])) + 1;
  const add = { action: 'add-spec', spec: { 'spec-id': specId, fields } };
  return {
    requirements: [
      { type: 'assert-default-spec-id', 'default-spec-id': metadata['default-spec-id'] },
      {
        type: 'assert-last-assigned-partition-id',
        'last-assigned-partition-id': metadata['last-partition-id'],
      },
    ],
    updates: [
      ...(known === undefined ? [add] : []),
      { action: 'set-default-spec', 'spec-id': known === undefined ? -1 : specId },
    ],
  };
}

function orderChange(
  metadata: TableMetadata,
  schema: Schema,
  expressions: readonly SortExpression[],
): Changes {
  const fields: readonly SortField[] = buildSortFields(expressions, schema);
  const orders = metadata['sort-orders'];
  const presentId = metadata['default-sort-order-id'];
  const present = orders.find((order) => order['order-id'] === presentId)?.fields ?? [];
  if (sameSortFields(present, fields)) return NOTHING;
  const known = orders.find((order) => sameSortFields(order.fields, fields))?.['order-id'];
  const next = Math.max(0, ...orders.map((order) => order['order-id'])) + 1;
  const orderId = fields.length === 0 ? 0 : next;
  return {
    requirements: [{ type: 'assert-default-sort-order-id', 'default-sort-order-id': presentId }],
    updates: [
      ...(known === undefined
        ? [{ action: 'add-sort-order', 'sort-order': { 'order-id': orderId, fields } }]
        : []),
      { action: 'set-default-sort-order', 'sort-order-id': known ?? -1 },
    ],
  };
}

/** What the config set before and doesn't any more goes back to ours, or away. Others' properties stay. */
function propertyChange(
  present: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): Changes {
  const names = Object.keys(wanted).toSorted();
  const dropped = configuredNames(present).filter((name) => wanted[name] === undefined);
  const after = { ...wanted };
  for (const name of dropped) {
    const ours = TABLE_PROPERTIES[name];
    if (ours !== undefined) after[name] = ours;
  }
  const list = names.length === 0 ? undefined : JSON.stringify(names);
  if (list !== undefined) after[CONFIGURED_PROPERTY] = list;
  const updates = Object.fromEntries(
    Object.entries(after).filter(([name, value]) => present[name] !== value),
  );
  const removals = [...dropped, ...(list === undefined ? [CONFIGURED_PROPERTY] : [])].filter(
    (name) => present[name] !== undefined && after[name] === undefined,
  );
  return {
    requirements: [],
    updates: [
      ...(Object.keys(updates).length === 0 ? [] : [{ action: 'set-properties', updates }]),
      ...(removals.length === 0 ? [] : [{ action: 'remove-properties', removals }]),
    ],
  };
}

/** What a new table starts with: ours, then the config's, and which those are. */
export function initialProperties(wanted: WantedLayout): Readonly<Record<string, string>> {
  const configured = wanted.properties;
  const names = Object.keys(configured).toSorted();
  const properties: Record<string, string> = { ...TABLE_PROPERTIES, ...configured };
  if (names.length > 0) properties[CONFIGURED_PROPERTY] = JSON.stringify(names);
  const layout = layoutTexts(wanted);
  if (layout.partitionBy + layout.sortBy !== '') {
    properties[CONFIGURED_LAYOUT] = JSON.stringify(layout);
  }
  return properties;
}

function configuredNames(properties: Readonly<Record<string, string>>): string[] {
  try {
    const parsed: unknown = JSON.parse(properties[CONFIGURED_PROPERTY] ?? '[]');
    return Array.isArray(parsed) ? parsed.map(String) : [];
  } catch {
    // Somebody's edit: then nothing is known to be ours.
    return [];
  }
}

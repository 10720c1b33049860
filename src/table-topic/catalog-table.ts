// A topic's table in the catalog: found, created, adopted or refused; evolved one change at a time (rule T10).
// Everything is taken from the table as the catalog returns it: ids may be others than those asked for.
// Not for: data commits (commit.ts).
import { FloeError, isFloeError } from '../base/error.ts';
import type {
  Catalog,
  LoadedTable,
  TableIdentifier,
  TableRequirement,
  TableUpdate,
} from '../catalog/catalog.ts';
import type { ProposedStruct } from '../formats/arrow/proposed-schema.ts';
import { currentSchema, indexSchema, mappingProperty } from '../formats/iceberg/index.ts';
import type { Schema, SortOrder, TableMetadata } from '../formats/iceberg/types.ts';
import { fileLayout } from '../formats/parquet/layout.ts';
import { type Evolution, evolve } from './evolve.ts';
import { FIELDS_PROPERTY, fieldMapOf, formatFieldMap } from './field-map.ts';
import type { FileTable } from './files.ts';
import { buildPartitionFields, buildSortFields } from './partition-spec.ts';
import { initialProperties, TABLE_PROPERTIES, type WantedLayout } from './table-layout.ts';
import {
  formerMarks,
  type Ownership,
  ownerProperties,
  ownershipOf,
  type TableOwner,
} from './table-owner.ts';
import { IDENTIFIERS_PROPERTY, withIdentifiers } from './upsert/identifiers.ts';

/** Rounds of load and commit that an evolution may lose to others before it is given up for now. */
const EVOLVE_ATTEMPTS = 5;

export type FoundTable =
  | { readonly kind: 'missing' }
  | (Ownership & { readonly table: LoadedTable });

/** Looks the table up and says whose it is. @throws FloeError `unavailable`, `timeout`, … */
export async function findTable(
  catalog: Catalog,
  identifier: TableIdentifier,
  owner: TableOwner,
): Promise<FoundTable> {
  let table: LoadedTable;
  try {
    table = await catalog.loadTable(identifier);
  } catch (caught) {
    if (isFloeError(caught, 'not-found')) return { kind: 'missing' };
    throw caught;
  }
  return { ...ownershipOf(table.metadata.properties ?? {}, owner), table };
}

export interface NewTable {
  readonly identifier: TableIdentifier;
  readonly owner: TableOwner;
  readonly proposed: ProposedStruct;
  readonly layout: WantedLayout;
}

/**
 * Creates the table, then writes the field map with the ids that the catalog gave.
 * @throws FloeError `conflict` when somebody created it meanwhile, `invalid` for a partition that doesn't fit.
 */
export async function createTable(catalog: Catalog, request: NewTable): Promise<LoadedTable> {
  const empty: Schema = { type: 'struct', 'schema-id': 0, fields: [] };
  const draft = evolve({
    schema: empty,
    lastColumnId: 0,
    fields: new Map(),
    proposed: request.proposed,
    newColumns: true,
    mayRename: false,
  });
  const { identifier, owner, layout } = request;
  const schema = withIdentifiers(draft.schema, layout.identifiers);
  const fields = buildPartitionFields(layout.partitionBy, draft.schema);
  const sortFields = buildSortFields(layout.sortBy, draft.schema);
  await catalog.ensureNamespace(identifier.namespace);
  const created = await catalog.createTable(identifier.namespace, {
    name: identifier.name,
    schema,
    partitionSpec: { 'spec-id': 0, fields },
    ...(sortFields.length === 0 ? {} : { writeOrder: { 'order-id': 1, fields: sortFields } }),
    properties: {
      ...initialProperties(layout),
      'format-version': String(layout.formatVersion),
      ...ownerProperties(owner),
      [FIELDS_PROPERTY]: formatFieldMap(draft.fields),
      ...(schema === draft.schema ? {} : { [IDENTIFIERS_PROPERTY]: 'true' }),
    },
  });
  return renumberFieldMap(catalog, created, draft);
}

/** When the catalog chose other ids than we did, the map follows, by the columns' places. */
async function renumberFieldMap(
  catalog: Catalog,
  created: LoadedTable,
  draft: Evolution,
): Promise<LoadedTable> {
  const asked = indexSchema(draft.schema);
  const given = indexSchema(currentSchema(created.metadata));
  const moved = new Map<string, number>();
  let differs = false;
  for (const [path, id] of draft.fields) {
    const place = asked.byId.get(id)!.fullName;
    const actual = given.byName.get(place)?.id;
    if (actual === undefined) {
      throw new FloeError('internal', `the catalog created the table without column "${place}"`);
    }
    differs ||= actual !== id;
    moved.set(path, actual);
  }
  if (!differs) return created;
  return catalog.commitTable(created.identifier, {
    requirements: [{ type: 'assert-table-uuid', uuid: created.metadata['table-uuid'] }],
    updates: [setProperties({ [FIELDS_PROPERTY]: formatFieldMap(moved) })],
  });
}

/** Sets what marks the table as this topic's: adoption, sharing, and a recreated topic that appends. */
export function claimTable(
  catalog: Catalog,
  table: LoadedTable,
  owner: TableOwner,
  properties: Readonly<Record<string, string>> = {},
): Promise<LoadedTable> {
  const removals = formerMarks(table.metadata.properties ?? {}, owner);
  return catalog.commitTable(table.identifier, {
    requirements: [{ type: 'assert-table-uuid', uuid: table.metadata['table-uuid'] }],
    updates: [
      setProperties({ ...TABLE_PROPERTIES, ...ownerProperties(owner), ...properties }),
      ...(removals.length === 0 ? [] : [{ action: 'remove-properties', removals }]),
    ],
  });
}

export interface EvolveTableRequest {
  readonly identifier: TableIdentifier;
  readonly tableUuid: string;
  readonly proposed: ProposedStruct;
  readonly newColumns: boolean;
  readonly mayRename: boolean;
  readonly revive?: boolean;
}

export interface EvolvedTable {
  readonly table: LoadedTable;
  readonly evolution: Evolution;
}

/**
 * Makes room in the table for what a source proposes; does nothing when there is room. Each round starts from the
 * table as loaded, so the loser of a race derives its change afresh, and an unknown outcome explains itself.
 */
export async function evolveTable(
  catalog: Catalog,
  request: EvolveTableRequest,
): Promise<EvolvedTable> {
  for (let attempt = 1; ; attempt += 1) {
    const table = await loadSame(catalog, request.identifier, request.tableUuid);
    const { metadata } = table;
    const schema = currentSchema(metadata);
    const fields = fieldMapOf(metadata);
    const evolution = evolve({
      schema,
      lastColumnId: metadata['last-column-id'],
      fields,
      ...request,
    });
    if (evolution.schema === schema && evolution.fields === fields) return { table, evolution };
    try {
      const after = await catalog.commitTable(request.identifier, {
        requirements: schemaRequirements(metadata),
        updates: schemaUpdates(evolution, metadata),
      });
      return { table: after, evolution };
    } catch (caught) {
      const again = isFloeError(caught, 'conflict', 'timeout', 'unavailable');
      if (!again || attempt >= EVOLVE_ATTEMPTS) throw caught;
    }
  }
}

/** T3: a schema change asserts table, schema and last field id. */
function schemaRequirements(metadata: TableMetadata): TableRequirement[] {
  return [
    { type: 'assert-table-uuid', uuid: metadata['table-uuid'] },
    { type: 'assert-current-schema-id', 'current-schema-id': metadata['current-schema-id'] },
    { type: 'assert-last-assigned-field-id', 'last-assigned-field-id': metadata['last-column-id'] },
  ];
}

function schemaUpdates(evolution: Evolution, metadata: TableMetadata): TableUpdate[] {
  const fields = { [FIELDS_PROPERTY]: formatFieldMap(evolution.fields) };
  if (evolution.schema === currentSchema(metadata)) return [setProperties(fields)];
  return [
    {
      action: 'add-schema',
      schema: evolution.schema,
      'last-column-id': evolution.lastColumnId,
    },
    { action: 'set-current-schema', 'schema-id': -1 },
    setProperties({ ...fields, ...mappingProperty(metadata, evolution.schema) }),
  ];
}

/** How files of the table are written now: its current schema, spec and sort order, and what its properties ask. */
export function fileTable(metadata: TableMetadata): FileTable {
  const schema = currentSchema(metadata);
  const specId = metadata['default-spec-id'];
  const orderId = metadata['default-sort-order-id'];
  const sortOrder = metadata['sort-orders'].find((order) => order['order-id'] === orderId);
  return {
    schema,
    spec: metadata['partition-specs'].find((spec) => spec['spec-id'] === specId)!,
    sortOrder: sortOrder ?? UNSORTED,
    layout: fileLayout(metadata.properties ?? {}, schema, sortOrder),
  };
}

const UNSORTED: SortOrder = { 'order-id': 0, fields: [] };

/** Loads the table and holds it against the uuid it must have (T3). @throws FloeError `conflict`, `not-found`. */
export async function loadSame(
  catalog: Catalog,
  identifier: TableIdentifier,
  tableUuid: string,
): Promise<LoadedTable> {
  const table = await catalog.loadTable(identifier);
  if (table.metadata['table-uuid'] !== tableUuid) {
    throw new FloeError(
      'conflict',
      `T3: ${identifier.namespace.join('.')}.${identifier.name} is another table now (uuid ${table.metadata['table-uuid']}, ours was ${tableUuid})`,
      { details: { replaced: true } },
    );
  }
  return table;
}

const setProperties = (updates: Readonly<Record<string, string>>) => ({
  action: 'set-properties',
  updates,
});

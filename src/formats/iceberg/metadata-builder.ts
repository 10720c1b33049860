// Table metadata in the making: new tables, and updates applied one after another. Pure: time comes in as a number,
// identity as a UUID; nothing is written. Source: Iceberg table spec (v2, v3), REST OpenAPI TableUpdate.
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import { MAIN_BRANCH } from './history.ts';
import { MAX_FORMAT_VERSION } from './metadata-check.ts';
import { bindSpec, FIRST_PARTITION_FIELD_ID } from './partition.ts';
import { isPrimitive } from './primitive.ts';
import { assignFreshIds, checkSchema, findField, highestFieldId, sameSchema } from './schema.ts';
import type { PartitionFieldRequest } from './shapes.ts';
import { canTransform, parseTransform } from './transform.ts';
import type {
  PartitionField,
  Schema,
  Snapshot,
  SnapshotRef,
  SortField,
  TableMetadata,
} from './types.ts';

/** "The one added by this very commit", where an update names a schema, spec or sort order. */
export const LAST_ADDED = -1;

export const DEFAULT_FORMAT_VERSION = 2;

/** Clocks of writers may differ by this much (ms) before a snapshot counts as too old. */
const CLOCK_SKEW_MS = 60_000;

/** Table properties that are facts of the metadata, never stored as properties. */
const RESERVED_PROPERTIES: ReadonlySet<string> = new Set([
  'format-version',
  'uuid',
  'snapshot-count',
  'current-snapshot-id',
  'current-snapshot-summary',
  'current-snapshot-timestamp-ms',
  'current-schema',
  'default-partition-spec',
  'default-sort-order',
]);

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const invalid = (message: string) => new FloeError('invalid', message);

export class MetadataBuilder {
  readonly #draft: Mutable<TableMetadata>;
  readonly #addedSnapshots = new Set<bigint>();
  readonly #nowMs: number;
  /** A table that doesn't exist yet may be of any version, older than the default too. */
  readonly #isNew: boolean;
  #lastSchema: number | undefined;
  #lastSpec: number | undefined;
  #lastOrder: number | undefined;

  /** Starts from `base`, or from nothing: then uuid, location, schema, spec and sort order must be set. */
  constructor(base: TableMetadata | undefined, nowMs: number) {
    this.#nowMs = nowMs;
    this.#isNew = base === undefined;
    this.#draft = base === undefined ? blank() : { ...base };
  }

  get #version(): number {
    return this.#draft['format-version'];
  }

  assignUuid(uuid: string): void {
    const present = this.#draft['table-uuid'];
    if (present !== '' && present.toLowerCase() !== uuid.toLowerCase())
      throw invalid(`the table has uuid ${present}: it can't become ${uuid}`);
    this.#draft['table-uuid'] = present === '' ? uuid : present;
  }

  upgradeFormatVersion(version: number): void {
    if (version > MAX_FORMAT_VERSION || version < 1)
      throw invalid(`format version ${version} does not exist here: 1 to ${MAX_FORMAT_VERSION} do`);
    if (version < this.#version && !this.#isNew)
      throw invalid(`format version ${this.#version} can't go back to ${version}`);
    if (version >= 3 && this.#draft['next-row-id'] === undefined) this.#draft['next-row-id'] = 0;
    this.#draft['format-version'] = version;
  }

  /** @throws FloeError `invalid` below format version 3. */
  requireRowLineage(): void {
    if (this.#version < 3)
      throw invalid(`row lineage needs format version 3, the table has ${this.#version}`);
  }

  setLocation(location: string): void {
    const trimmed = location.replace(/\/+$/, '');
    if (!/^[a-z][a-z0-9+.-]*:\/\/?[^/]?/i.test(trimmed))
      throw invalid(`location "${location}" must be absolute, with its scheme (file://, s3://)`);
    this.#draft.location = trimmed;
  }

  /** `lastColumnId` may name ids that were used and dropped again; a lower one than the table's says nothing. */
  addSchema(schema: Schema, lastColumnId: number | undefined): void {
    checkSchema(schema, this.#version);
    const highest = Math.max(highestFieldId(schema), this.#draft['last-column-id']);
    this.#draft['last-column-id'] = Math.max(highest, lastColumnId ?? 0);
    const same = this.#draft.schemas.find((one) => sameSchema(one, schema));
    const id = same?.['schema-id'] ?? nextId(this.#draft.schemas.map((one) => one['schema-id']));
    if (same === undefined)
      this.#draft.schemas = [...this.#draft.schemas, { ...schema, 'schema-id': id }];
    this.#lastSchema = id;
  }

  setCurrentSchema(schemaId: number): void {
    const id = added(schemaId, this.#lastSchema, 'schema');
    if (!this.#draft.schemas.some((schema) => schema['schema-id'] === id))
      throw invalid(`the table has no schema ${id}`);
    this.#draft['current-schema-id'] = id;
  }

  removeSchemas(ids: readonly number[]): void {
    if (ids.includes(this.#draft['current-schema-id']))
      throw invalid("the current schema can't be removed");
    this.#draft.schemas = this.#draft.schemas.filter((one) => !ids.includes(one['schema-id']));
  }

  addSpec(request: readonly PartitionFieldRequest[]): void {
    checkPartitionNames(request, this.#schema());
    const fields = request.map((field) => this.#numbered(field));
    const ids = new Set(fields.map((field) => field['field-id']));
    if (ids.size < fields.length) throw invalid('a partition spec uses a field id twice');
    bindSpec({ 'spec-id': 0, fields }, this.#schema());
    this.#draft['last-partition-id'] = Math.max(this.#draft['last-partition-id'], ...ids);
    const specs = this.#draft['partition-specs'];
    const same = specs.find((spec) => samePartitionFields(spec.fields, fields));
    const id = same?.['spec-id'] ?? nextId(specs.map((spec) => spec['spec-id']));
    if (same === undefined) this.#draft['partition-specs'] = [...specs, { 'spec-id': id, fields }];
    this.#lastSpec = id;
  }

  /** A partition field with an id: the one asked for, the one of an equal field of an earlier spec, or a new one. */
  #numbered(request: PartitionFieldRequest): PartitionField {
    const asked = request['field-id'];
    if (asked !== undefined) return { ...request, 'field-id': asked };
    const earlier = this.#draft['partition-specs']
      .flatMap((spec) => spec.fields)
      .find(
        (field) =>
          field['source-id'] === request['source-id'] && field.transform === request.transform,
      );
    if (earlier !== undefined) return { ...request, 'field-id': earlier['field-id'] };
    this.#draft['last-partition-id'] += 1;
    return { ...request, 'field-id': this.#draft['last-partition-id'] };
  }

  setDefaultSpec(specId: number): void {
    const id = added(specId, this.#lastSpec, 'partition spec');
    if (!this.#draft['partition-specs'].some((spec) => spec['spec-id'] === id))
      throw invalid(`the table has no partition spec ${id}`);
    this.#draft['default-spec-id'] = id;
  }

  removeSpecs(ids: readonly number[]): void {
    if (ids.includes(this.#draft['default-spec-id']))
      throw invalid("the default partition spec can't be removed");
    this.#draft['partition-specs'] = this.#draft['partition-specs'].filter(
      (spec) => !ids.includes(spec['spec-id']),
    );
  }

  addSortOrder(fields: readonly SortField[]): void {
    for (const field of fields) checkSortField(field, this.#schema());
    const orders = this.#draft['sort-orders'];
    const same = orders.find((order) => JSON.stringify(order.fields) === JSON.stringify(fields));
    const id =
      same?.['order-id'] ??
      // 0 is the unsorted order for ever.
      (fields.length === 0 ? 0 : Math.max(1, nextId(orders.map((order) => order['order-id']))));
    if (same === undefined) this.#draft['sort-orders'] = [...orders, { 'order-id': id, fields }];
    this.#lastOrder = id;
  }

  setDefaultSortOrder(orderId: number): void {
    const id = added(orderId, this.#lastOrder, 'sort order');
    if (!this.#draft['sort-orders'].some((order) => order['order-id'] === id))
      throw invalid(`the table has no sort order ${id}`);
    this.#draft['default-sort-order-id'] = id;
  }

  addSnapshot(snapshot: Snapshot): void {
    const id = snapshot['snapshot-id'];
    const sequence = snapshot['sequence-number'] ?? 0;
    const last = this.#draft['last-sequence-number'];
    if (this.#snapshot(id) !== undefined)
      throw new FloeError('conflict', `snapshot ${id} exists already`);
    // A snapshot without parent replaces the table's content: other catalogs let it share a sequence number
    // with what it replaces, and clients that replace tables concurrently rely on that.
    const replaces = snapshot['parent-snapshot-id'] === undefined;
    if (this.#version >= 2 && sequence <= last && !replaces) {
      throw new FloeError(
        'conflict',
        `snapshot ${id} has sequence number ${sequence}, the table is at ${last}: reload it`,
      );
    }
    if (snapshot['timestamp-ms'] < this.#draft['last-updated-ms'] - CLOCK_SKEW_MS) {
      throw invalid(
        `snapshot ${id} is older than the table's last update by more than ${CLOCK_SKEW_MS} ms: check the writer's clock`,
      );
    }
    if (this.#version >= 3) this.#addRows(snapshot);
    this.#draft.snapshots = [...(this.#draft.snapshots ?? []), snapshot];
    if (this.#version >= 2) this.#draft['last-sequence-number'] = Math.max(last, sequence);
    this.#addedSnapshots.add(id);
  }

  #addRows(snapshot: Snapshot): void {
    const next = this.#draft['next-row-id'] ?? 0;
    const { 'first-row-id': first, 'added-rows': rows } = snapshot;
    if (first === undefined || rows === undefined || rows < 0)
      throw invalid('a snapshot of a v3 table has first-row-id and added-rows');
    if (first < next) {
      throw new FloeError(
        'conflict',
        `first-row-id ${first} is below the table's next-row-id ${next}: reload it`,
      );
    }
    this.#draft['next-row-id'] = first + rows;
  }

  setRef(name: string, ref: SnapshotRef): void {
    const id = ref['snapshot-id'];
    const snapshot = this.#snapshot(id);
    if (snapshot === undefined) throw invalid(`ref "${name}": the table has no snapshot ${id}`);
    checkRef(name, ref);
    this.#draft.refs = { ...this.#draft.refs, [name]: ref };
    if (name !== MAIN_BRANCH || this.#draft['current-snapshot-id'] === id) return;
    this.#draft['current-snapshot-id'] = id;
    const timestamp = this.#addedSnapshots.has(id) ? snapshot['timestamp-ms'] : this.#updatedMs();
    this.#draft['snapshot-log'] = [
      ...(this.#draft['snapshot-log'] ?? []),
      { 'timestamp-ms': timestamp, 'snapshot-id': id },
    ];
  }

  removeRef(name: string): void {
    const { [name]: _gone, ...refs } = this.#draft.refs ?? {};
    this.#draft.refs = refs;
    if (name === MAIN_BRANCH) delete this.#draft['current-snapshot-id'];
  }

  /** Refs to a removed snapshot go with it; so do its statistics and the history before it. */
  removeSnapshots(ids: readonly bigint[]): void {
    const gone = new Set(ids);
    const kept = <T extends { readonly 'snapshot-id': bigint }>(items: readonly T[] | undefined) =>
      (items ?? []).filter((item) => !gone.has(item['snapshot-id']));
    this.#draft.snapshots = kept(this.#draft.snapshots);
    for (const [name, ref] of Object.entries(this.#draft.refs ?? {}))
      if (gone.has(ref['snapshot-id'])) this.removeRef(name);
    const log = this.#draft['snapshot-log'] ?? [];
    const lastGap = log.findLastIndex((entry) => gone.has(entry['snapshot-id']));
    this.#draft['snapshot-log'] = log.slice(lastGap + 1);
    for (const id of gone) {
      this.removeStatistics('statistics', id);
      this.removeStatistics('partition-statistics', id);
    }
  }

  /** One statistics file per snapshot; a newer one replaces it. */
  setStatistics(
    kind: 'statistics' | 'partition-statistics',
    statistics: { readonly 'snapshot-id': bigint },
  ): void {
    this.removeStatistics(kind, statistics['snapshot-id']);
    this.#draft[kind] = [...(this.#draft[kind] ?? []), statistics];
  }

  removeStatistics(kind: 'statistics' | 'partition-statistics', snapshotId: bigint): void {
    if (this.#draft[kind] === undefined) return;
    this.#draft[kind] = this.#draft[kind].filter(
      (one) => (one as { 'snapshot-id': bigint })['snapshot-id'] !== snapshotId,
    );
  }

  setProperties(changes: Readonly<Record<string, string>>): void {
    const stored = Object.entries(changes).filter(([key]) => !RESERVED_PROPERTIES.has(key));
    this.#draft.properties = { ...this.#draft.properties, ...Object.fromEntries(stored) };
  }

  removeProperties(names: readonly string[]): void {
    const kept = Object.entries(this.#draft.properties ?? {}).filter(
      ([key]) => !names.includes(key),
    );
    this.#draft.properties = Object.fromEntries(kept);
  }

  setEncryptionKey(key: { readonly 'key-id': string }): void {
    this.removeEncryptionKey(key['key-id']);
    this.#draft['encryption-keys'] = [...(this.#draft['encryption-keys'] ?? []), key];
  }

  removeEncryptionKey(keyId: string): void {
    this.#draft['encryption-keys'] = (this.#draft['encryption-keys'] ?? []).filter(
      (key) => (key as { 'key-id': string })['key-id'] !== keyId,
    );
  }

  /** The finished metadata. @throws FloeError `invalid` when it doesn't hold together. */
  build(): TableMetadata {
    const draft = this.#draft;
    if (draft['table-uuid'] === '') throw invalid('a new table needs a uuid (assign-uuid)');
    if (draft.location === '') throw invalid('a new table needs a location (set-location)');
    const schema = this.#schema();
    const spec = draft['partition-specs'].find(
      (one) => one['spec-id'] === draft['default-spec-id'],
    );
    if (spec === undefined) throw invalid('the table has no default partition spec');
    const order = draft['sort-orders'].find(
      (one) => one['order-id'] === draft['default-sort-order-id'],
    );
    if (order === undefined) throw invalid('the table has no default sort order');
    bindSpec(spec, schema);
    for (const field of order.fields) checkSortField(field, schema);
    draft['last-updated-ms'] = this.#updatedMs();
    assert(
      draft.refs?.[MAIN_BRANCH]?.['snapshot-id'] === draft['current-snapshot-id'],
      'main is the current snapshot',
    );
    return draft;
  }

  #updatedMs(): number {
    const newest = Math.max(
      0,
      ...(this.#draft.snapshots ?? [])
        .filter((one) => this.#addedSnapshots.has(one['snapshot-id']))
        .map((one) => one['timestamp-ms']),
    );
    return Math.max(this.#nowMs, this.#draft['last-updated-ms'], newest);
  }

  #schema(): Schema {
    const id = this.#draft['current-schema-id'];
    const found =
      this.#draft.schemas.find((schema) => schema['schema-id'] === id) ??
      // A create's updates may add the spec before the schema is made current.
      this.#draft.schemas.find((schema) => schema['schema-id'] === this.#lastSchema);
    if (found === undefined) throw invalid('the table has no schema (add-schema comes first)');
    return found;
  }

  #snapshot(id: bigint): Snapshot | undefined {
    return this.#draft.snapshots?.find((snapshot) => snapshot['snapshot-id'] === id);
  }
}

function blank(): Mutable<TableMetadata> {
  return {
    'format-version': DEFAULT_FORMAT_VERSION,
    'table-uuid': '',
    location: '',
    'last-sequence-number': 0,
    'last-updated-ms': 0,
    'last-column-id': 0,
    'current-schema-id': LAST_ADDED,
    schemas: [],
    'default-spec-id': LAST_ADDED,
    'partition-specs': [],
    'last-partition-id': FIRST_PARTITION_FIELD_ID - 1,
    'default-sort-order-id': LAST_ADDED,
    'sort-orders': [],
    properties: {},
    refs: {},
    snapshots: [],
    statistics: [],
    'partition-statistics': [],
    'snapshot-log': [],
    'metadata-log': [],
  };
}

const nextId = (ids: readonly number[]) => Math.max(-1, ...ids) + 1;

function added(id: number, last: number | undefined, what: string): number {
  if (id !== LAST_ADDED) return id;
  if (last === undefined) throw invalid(`-1 means the ${what} added by this commit: it adds none`);
  return last;
}

function samePartitionFields(a: readonly PartitionField[], b: readonly PartitionField[]): boolean {
  return (
    a.length === b.length &&
    a.every((field, index) => {
      const other = b[index]!;
      return (
        field['source-id'] === other['source-id'] &&
        field['field-id'] === other['field-id'] &&
        field.transform === other.transform &&
        field.name === other.name
      );
    })
  );
}

/** A partition may be named like a column only when it is that column's identity. */
function checkPartitionNames(fields: readonly PartitionFieldRequest[], schema: Schema): void {
  const names = new Set<string>();
  for (const { name, transform, 'source-id': source } of fields) {
    if (name === '') throw invalid('a partition field has a name');
    if (names.has(name)) throw invalid(`the partition spec names "${name}" twice`);
    names.add(name);
    const column = findField(schema, name);
    if (column !== undefined && (column.id !== source || transform !== 'identity'))
      throw invalid(`partition field "${name}" has the name of a column: choose another`);
    if (findField(schema, source)?.repeated === true)
      throw invalid(`partition field "${name}": its source is inside a list or map`);
  }
}

function checkSortField(field: SortField, schema: Schema): void {
  const source = findField(schema, field['source-id']);
  if (source === undefined)
    throw invalid(`sort order: the schema has no field ${field['source-id']}`);
  const transform = parseTransform(field.transform);
  if (!isPrimitive(source.type) || !canTransform(transform, source.type))
    throw invalid(`sort order: ${field.transform} can't take "${source.fullName}"`);
}

function checkRef(name: string, ref: SnapshotRef): void {
  if (name === MAIN_BRANCH && ref.type !== 'branch') throw invalid('"main" is a branch');
  const branchOnly = ref['min-snapshots-to-keep'] ?? ref['max-snapshot-age-ms'];
  if (ref.type === 'tag' && branchOnly !== undefined)
    throw invalid(`tag "${name}": only a branch has min-snapshots-to-keep or max-snapshot-age-ms`);
  for (const value of [
    ref['min-snapshots-to-keep'],
    ref['max-snapshot-age-ms'],
    ref['max-ref-age-ms'],
  ]) {
    if (value !== undefined && value <= 0)
      throw invalid(`ref "${name}": retention values are above 0`);
  }
}

export interface NewTable {
  readonly uuid: string;
  readonly location: string;
  readonly schema: Schema;
  readonly partitionFields?: readonly PartitionFieldRequest[];
  readonly sortFields?: readonly SortField[];
  /** `format-version` chooses the version (default 2) and is not stored. */
  readonly properties?: Readonly<Record<string, string>>;
  readonly nowMs: number;
}

/** Metadata of a new, empty table. All ids are assigned afresh. @throws FloeError `invalid`. */
export function newTableMetadata(table: NewTable): TableMetadata {
  const properties = table.properties ?? {};
  const builder = new MetadataBuilder(undefined, table.nowMs);
  const version = Number(properties['format-version'] ?? DEFAULT_FORMAT_VERSION);
  if (!Number.isInteger(version) || version < 1 || version > MAX_FORMAT_VERSION)
    throw invalid(`format-version "${properties['format-version']}" is not 1, 2 or 3`);
  // Names twice, unknown types: told in terms of the ids that were asked for.
  checkSchema(table.schema, version);
  const { schema, ids } = assignFreshIds(table.schema);
  const source = <T extends { readonly 'source-id': number }>(field: T): T => {
    const fresh = ids.get(field['source-id']);
    if (fresh === undefined) throw invalid(`the schema has no field ${field['source-id']}`);
    return { ...field, 'source-id': fresh };
  };
  builder.assignUuid(table.uuid);
  builder.setLocation(table.location);
  builder.upgradeFormatVersion(version);
  builder.addSchema({ ...schema, 'schema-id': 0 }, undefined);
  builder.setCurrentSchema(LAST_ADDED);
  builder.addSpec(
    (table.partitionFields ?? []).map(({ 'field-id': _id, ...field }) => source(field)),
  );
  builder.setDefaultSpec(LAST_ADDED);
  builder.addSortOrder((table.sortFields ?? []).map(source));
  builder.setDefaultSortOrder(LAST_ADDED);
  builder.setProperties(properties);
  return builder.build();
}

// A topic's table as its jobs see it: resolved in the catalog, evolved when records need it, handed to workers as
// plain data with committed ids. One change at a time (rule T10), so everything that changes it takes one mutex.
// Not for: reading, staging, committing.
import { assert } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { FloeError, isFloeError } from '../base/error.ts';
import { Mutex } from '../base/queue.ts';
import type { Catalog, LoadedTable, TableIdentifier } from '../catalog/catalog.ts';
import type { ProposedStruct } from '../formats/arrow/proposed-schema.ts';
import { currentSchema, dataFolder, findField } from '../formats/iceberg/index.ts';
import type { TableMetadata } from '../formats/iceberg/types.ts';
import type { SchemaSource } from '../schema-registry/schema-source.ts';
import {
  claimTable,
  createTable,
  evolveTable,
  fileTable,
  findTable,
  loadSame,
} from './catalog-table.ts';
import { columnSelection, selectColumns } from './column-selection.ts';
import { declaredStruct } from './declared-columns.ts';
import { evolve, type TypeConflict } from './evolve.ts';
import { fieldMapOf } from './field-map.ts';
import type { DeadLetterTable, JobNeeds, JobTable, SourceBinding } from './job.ts';
import { furtherTypes, without } from './json-source.ts';
import type { SystemColumn, TopicConfigs } from './settings/index.ts';
import { SYSTEM_COLUMNS } from './settings/index.ts';
import type { Side } from './sources/source.ts';
import { type Proposal, TopicSources } from './sources/topic-sources.ts';
import { LATEST_KEY, type SourceKey, splitKey } from './sources/wire.ts';
import {
  DEAD_LETTER_TABLE,
  systemFields,
  systemPath,
  wantedSystemColumns,
  wholeValue,
} from './system-columns.ts';
import { conformTable, type WantedLayout } from './table-layout.ts';
import { isShared, type TableOwner } from './table-owner.ts';
import { wantedIdentifiers } from './upsert/identifiers.ts';
import { type Offsets, readBack } from './watermark.ts';

/** Converters whose columns are a registered schema's. */
const BY_SCHEMA: ReadonlySet<string> = new Set(['by_schema_id', 'by_latest_schema']);

/** Schemas (and messages of schemas) bound at a time; beyond, all are forgotten and bound again as they come. */
const MAX_SOURCES = 2_000;

export interface BindingDeps {
  readonly catalog: Catalog;
  readonly schemas: SchemaSource;
  readonly clock: Clock;
}

export interface BindingOptions {
  readonly owner: TableOwner;
  readonly identifier: TableIdentifier;
  readonly config: TopicConfigs & { readonly properties: Readonly<Record<string, string>> };
  /** Known from before; empty when the table was never seen. */
  readonly tableUuid: string;
}

/** Trouble of this table alone, with the sentence that its status shows. */
export function trouble(reason: string, cause?: unknown): FloeError {
  return new FloeError('invalid', reason, {
    ...(cause === undefined ? {} : { cause }),
    details: { trouble: true },
  });
}

/** Trouble of a table that was there and isn't any more: dropped, or another one in its place. */
const lost = (reason: string) =>
  new FloeError('invalid', reason, { details: { trouble: true, lost: true } });

export const isLost = (caught: unknown) =>
  isFloeError(caught, 'invalid') && caught.details?.['lost'] === true;

export class TableBinding {
  readonly #deps: BindingDeps;
  readonly #options: BindingOptions;
  readonly #mutex = new Mutex();
  readonly #sources: TopicSources;
  #table: LoadedTable | undefined;
  #deadLetters: LoadedTable | undefined;
  /** Offsets below which dead letters are committed already. */
  #deadLetterOffsets: Offsets = new Map();
  #values = new Map<SourceKey, SourceBinding>();
  #keys = new Map<SourceKey, SourceBinding>();
  #json: ReadonlyMap<string, number> = new Map();
  #version = 0;

  constructor(deps: BindingDeps, options: BindingOptions) {
    this.#deps = deps;
    this.#options = options;
    const { owner, config } = options;
    this.#sources = new TopicSources(deps, { topicName: owner.topicName, config });
  }

  get identifier(): TableIdentifier {
    return this.#options.identifier;
  }

  get table(): LoadedTable | undefined {
    return this.#table;
  }

  get deadLetterTable(): LoadedTable | undefined {
    return this.#deadLetters;
  }

  get deadLetterIdentifier(): TableIdentifier {
    const { namespace, name } = this.#options.identifier;
    return { namespace, name: `${name}_dlq` };
  }

  /**
   * Finds the table, or creates it when its columns are known. False: they will only be known from records.
   * @throws FloeError with `details.trouble` when somebody has to decide; `unavailable`, `timeout` otherwise.
   */
  open(): Promise<boolean> {
    return this.#mutex.run(async () => {
      this.#table = await this.#find();
      if (this.#table === undefined) {
        if (this.#options.tableUuid !== '') throw lost(this.#droppedText());
        const proposed = await this.#knownColumns();
        if (proposed !== undefined) await this.#create(proposed);
      }
      await this.#findDeadLetters();
      if (this.#table === undefined) return false;
      await this.#evolve(this.#standingColumns(), false);
      await this.#declare();
      await this.#conform();
      return true;
    });
  }

  /**
   * Makes what a job asked for, as far as it can be had. False: nothing changed, so asking again won't help.
   * @throws as {@link open}.
   */
  satisfy(needs: JobNeeds): Promise<boolean> {
    return this.#mutex.run(async () => {
      const before = this.#table?.metadata['current-schema-id'];
      if (needs.columns !== undefined) await this.#bindJson(needs.columns);
      for (const columns of needs.schemas ?? []) await this.#evolve(this.#select(columns), false);
      for (const key of needs.valueSchemas) await this.#bindSchema(key, 'value');
      for (const key of needs.keySchemas) await this.#bindSchema(key, 'key');
      if (this.#table === undefined) await this.#createWithoutColumns();
      if (needs.deadLetterTable) await this.#createDeadLetters();
      this.#version += 1;
      const schemas = needs.schemas?.length ?? 0;
      const asked =
        schemas + needs.valueSchemas.length + needs.keySchemas.length > 0 || needs.deadLetterTable;
      return asked || before !== this.#table?.metadata['current-schema-id'];
    });
  }

  /** Takes note of the table as somebody loaded it. Columns that others changed are bound anew. */
  observe(metadata: TableMetadata): void {
    const before = this.#table;
    if (before === undefined || before.metadata['table-uuid'] !== metadata['table-uuid']) return;
    // An older answer, overtaken by a newer one.
    if (metadata['last-updated-ms'] < before.metadata['last-updated-ms']) return;
    this.#table = { ...before, metadata };
    const same =
      before.metadata['current-schema-id'] === metadata['current-schema-id'] &&
      before.metadata['default-spec-id'] === metadata['default-spec-id'];
    if (!same) this.#forgetSources();
  }

  observeDeadLetters(metadata: TableMetadata, offsets: Offsets): void {
    if (this.#deadLetters !== undefined) this.#deadLetters = { ...this.#deadLetters, metadata };
    this.#deadLetterOffsets = offsets;
  }

  /** Loads the table again and binds everything anew: after a discarded stage (T8). */
  reload(): Promise<void> {
    return this.#mutex.run(async () => {
      const before = this.#table;
      if (before === undefined) return;
      const uuid = before.metadata['table-uuid'];
      this.#table = await loadSame(this.#deps.catalog, this.#options.identifier, uuid);
      this.#forgetSources();
      await this.#evolve(this.#standingColumns(), false);
    });
  }

  /** How far the table of dead letters is. */
  get deadLetterOffsets(): Offsets {
    return this.#deadLetterOffsets;
  }

  deadLettersFrom(partition: number): number {
    return this.#deadLetterOffsets.get(partition) ?? 0;
  }

  /** What a job needs to write; undefined while the table doesn't exist. */
  jobTable(): JobTable | undefined {
    this.#expireUnknown();
    const table = this.#table;
    if (table === undefined) return undefined;
    const { metadata, identifier } = table;
    const fields = fieldMapOf(metadata);
    const schema = currentSchema(metadata);
    const system: Partial<Record<SystemColumn, number>> = {};
    for (const column of SYSTEM_COLUMNS) {
      const id = fields.get(systemPath(column));
      if (id !== undefined && findField(schema, id) !== undefined) system[column] = id;
    }
    const specId = metadata['default-spec-id'];
    return {
      key: `${metadata['table-uuid']}/${schema['schema-id']}/${specId}/${this.#version}/${this.#options.config['table.topic.convert.value.type']}`,
      name: [...identifier.namespace, identifier.name].join('.'),
      ...fileTable(metadata),
      dataFolder: dataFolder(metadata),
      system,
      fields,
      bindings: new Map([
        ...[...fields].filter(([, id]) => findField(schema, id) !== undefined),
        ...this.#json,
      ]),
      values: this.#values,
      keys: this.#keys,
    };
  }

  jobDeadLetters(): DeadLetterTable | undefined {
    if (this.#deadLetters === undefined) return undefined;
    const { metadata } = this.#deadLetters;
    return {
      key: metadata['table-uuid'],
      ...fileTable(metadata),
      dataFolder: dataFolder(metadata),
    };
  }

  async #find(): Promise<LoadedTable | undefined> {
    const { catalog } = this.#deps;
    const { identifier, owner, config, tableUuid } = this.#options;
    const found = await findTable(catalog, identifier, owner);
    if (found.kind === 'missing') return undefined;
    const { table } = found;
    if (tableUuid !== '' && table.metadata['table-uuid'] !== tableUuid) {
      throw lost(
        `${tableText(identifier)} was replaced by another table: resume with policy "restart" to fill it from the start`,
      );
    }
    if (found.kind === 'own') {
      const joins = owner.shared && !isShared(table.metadata.properties ?? {});
      return joins ? claimTable(catalog, table, owner) : table;
    }
    if (found.kind === 'joinable') {
      if (owner.shared) return claimTable(catalog, table, owner);
      throw trouble(
        `${tableText(identifier)} is shared by other topics: set table.topic.shared=true to fill it too, or table.topic.name to another one`,
      );
    }
    if (found.kind === 'recreated') {
      switch (config['table.topic.recreated']) {
        case 'append':
          return claimTable(catalog, table, owner);
        case 'replace':
          if (isShared(table.metadata.properties ?? {})) {
            throw trouble(
              `${tableText(identifier)} holds rows of other topics too: table.topic.recreated=replace would drop them, set it to append`,
            );
          }
          // The topic it was filled from is gone, and so are its rows: nobody else would delete the files.
          await catalog.dropTable(identifier, { purge: true });
          return undefined;
        case 'suspend':
          throw trouble(
            `${tableText(identifier)} holds the rows of a deleted topic of the same name (id ${found.formerTopicId}): set table.topic.recreated to append or replace`,
          );
      }
    }
    if (!config['table.topic.adopt']) {
      throw trouble(
        `${tableText(identifier)} exists and isn't this topic's: set table.topic.name to another one, or table.topic.adopt=true to write into it`,
      );
    }
    return this.#adopt(table);
  }

  async #adopt(table: LoadedTable): Promise<LoadedTable> {
    const required = currentSchema(table.metadata).fields.filter((field) => field.required);
    if (required.length > 0) {
      const names = required.map((field) => field.name).join(', ');
      throw trouble(
        `${tableText(table.identifier)} can't be adopted: its columns ${names} are required and a topic may leave any column empty`,
      );
    }
    return claimTable(this.#deps.catalog, table, this.#options.owner);
  }

  #droppedText(): string {
    const { identifier } = this.#options;
    return `${tableText(identifier)} was dropped: resume with policy "restart" to create and fill it again`;
  }

  /** Columns that are known before any record is read. */
  async #knownColumns(): Promise<ProposedStruct | undefined> {
    const { config } = this.#options;
    switch (config['table.topic.convert.value.type']) {
      case 'raw':
        return this.#withSystem(wholeValue('binary'));
      case 'string':
        return this.#withSystem(wholeValue('string'));
      case 'json':
        if (config['table.topic.transform.value.type'] !== 'none') return this.#declaredColumns();
        return this.#withSystem(wholeValue('string'));
      case 'by_schema_id':
      case 'by_latest_schema': {
        const columns = await this.#sources.newest();
        return columns === undefined ? undefined : this.#withSystem(this.#select(columns));
      }
    }
  }

  /** The declared columns of a new table; undefined when there are none: they will be known from records. */
  #declaredColumns(): ProposedStruct | undefined {
    const declared = this.#select(declaredStruct(this.#options.config['table.topic.columns']));
    return declared.fields.length === 0 ? undefined : this.#withSystem(declared);
  }

  /** Gives a table the columns that the config declares. @throws trouble when one is there with another type. */
  async #declare(): Promise<void> {
    const declared = this.#select(declaredStruct(this.#options.config['table.topic.columns']));
    if (declared.fields.length === 0) return;
    const { metadata } = this.#table!;
    const { conflicts } = evolve({
      schema: currentSchema(metadata),
      lastColumnId: metadata['last-column-id'],
      fields: fieldMapOf(metadata),
      proposed: declared,
      newColumns: false,
      mayRename: false,
    });
    const [first] = conflicts;
    if (first !== undefined) {
      throw trouble(
        `table.topic.columns: column "${first.column}" is ${first.columnType} and can't become ${first.sourceType}`,
      );
    }
    await this.#evolve(declared, false);
  }

  /** The value's columns that the config wants, under the names it wants. */
  #select(value: ProposedStruct): ProposedStruct {
    return selectColumns(value, columnSelection(this.#options.config));
  }

  /** The value's columns, then the system's. */
  #withSystem(value: ProposedStruct): ProposedStruct {
    const known = new Set(value.fields.map((field) => field.path));
    const standing = this.#standingColumns().fields.filter((field) => !known.has(field.path));
    return { type: 'struct', fields: [...value.fields, ...standing] };
  }

  /** Columns that don't depend on records: those the table must have before any job. */
  #standingColumns(): ProposedStruct {
    const { config } = this.#options;
    const key = config['table.topic.convert.key.type'];
    // A key by schema gets its column with its first schema.
    const wanted = wantedSystemColumns(config).filter(
      (column) => !(column === 'key' && BY_SCHEMA.has(key)),
    );
    const system = systemFields(wanted, key === 'raw' ? 'binary' : 'string');
    const value = config['table.topic.convert.value.type'];
    const whole = config['table.topic.transform.value.type'] === 'none';
    if (BY_SCHEMA.has(value) || (value === 'json' && !whole)) {
      return { type: 'struct', fields: system };
    }
    const kept = wholeValue(value === 'raw' ? 'binary' : 'string');
    return { type: 'struct', fields: [...kept.fields, ...system] };
  }

  async #create(proposed: ProposedStruct): Promise<void> {
    const { identifier, owner, config } = this.#options;
    try {
      this.#table = await createTable(this.#deps.catalog, {
        identifier,
        owner,
        proposed,
        layout: wantedLayout(config),
      });
    } catch (caught) {
      if (isFloeError(caught, 'conflict')) this.#table = await this.#find();
      else if (isFloeError(caught, 'invalid')) throw trouble(caught.message, caught);
      else throw caught;
    }
    assert(this.#table !== undefined, 'a created table is there');
    await this.#evolve(this.#standingColumns(), false);
  }

  /** Nothing that came has columns (all of it dead letters): the table starts with the system's. */
  async #createWithoutColumns(): Promise<void> {
    await this.#create({ type: 'struct', fields: this.#standingColumns().fields });
  }

  /** Asks the table for columns and returns where they are; creates the table when there is none. */
  async #evolve(
    proposed: ProposedStruct,
    mayRename: boolean,
    revive = false,
  ): Promise<{
    readonly bindings: ReadonlyMap<string, number>;
    readonly conflicts: readonly TypeConflict[];
  }> {
    if (this.#table === undefined) await this.#create(this.#withSystem(proposed));
    const { identifier, config } = this.#options;
    const policy = config['table.topic.evolution.incompatible'];
    const { table, evolution } = await evolveTable(this.#deps.catalog, {
      identifier,
      tableUuid: this.#table!.metadata['table-uuid'],
      proposed,
      newColumns: policy === 'new_column',
      mayRename,
      revive,
    });
    const before = this.#table!.metadata['current-schema-id'];
    this.#table = table;
    if (before !== table.metadata['current-schema-id']) this.#version += 1;
    const [first] = evolution.conflicts;
    if (first !== undefined && policy === 'suspend') {
      throw trouble(
        `column "${first.column}" is ${first.columnType} and the source now writes ${first.sourceType} (table.topic.evolution.incompatible=suspend)`,
      );
    }
    const { bindings, conflicts } = evolution;
    // Kept for reads by path of what isn't a schema's.
    this.#json = new Map([...this.#json, ...bindings]);
    return { bindings, conflicts: policy === 'dlq' ? conflicts : [] };
  }

  async #bindJson(columns: ProposedStruct): Promise<void> {
    const policy = this.#options.config['table.topic.evolution.incompatible'];
    const fields = this.#table === undefined ? new Map() : fieldMapOf(this.#table.metadata);
    const further = policy === 'new_column' ? [] : furtherTypes(columns, fields);
    if (further.length > 0 && policy === 'suspend') {
      throw trouble(
        `values need further columns ${further.join(', ')} because a field changed its type (table.topic.evolution.incompatible=suspend)`,
      );
    }
    await this.#evolve(this.#select(without(columns, further)), false, true);
  }

  /** Binds a schema unless it is; of a Protobuf file, the one message. */
  async #bindSchema(key: SourceKey, side: Side): Promise<void> {
    const bound = side === 'value' ? this.#values : this.#keys;
    if (bound.size >= MAX_SOURCES) bound.clear();
    if (isBound(bound, key)) return;
    const proposal = await this.#sources.propose(key, side);
    const { schema } = splitKey(key);
    if (proposal.hasMessages) bound.set(schema, { kind: 'messages' });
    const place = proposal.hasMessages ? key : schema;
    bound.set(
      place,
      proposal.kind === 'refused' ? proposal : await this.#bindProposal(proposal, side),
    );
  }

  async #bindProposal(proposal: Proposal, side: Side): Promise<SourceBinding> {
    const { text, columns, mayRename, name } = proposal;
    const chosen = side === 'value' ? this.#select(columns) : columns;
    const { bindings, conflicts } = await this.#evolve(chosen, mayRename);
    const [first] = conflicts;
    if (first === undefined) return { kind: 'bound', text, bindings };
    return {
      kind: 'refused',
      reason: 'incompatible_type',
      error: `column "${first.column}" is ${first.columnType}, ${name} writes ${first.sourceType}`,
    };
  }

  async #conform(): Promise<void> {
    const { catalog } = this.#deps;
    try {
      const wanted = wantedLayout(this.#options.config);
      this.#table = await conformTable(catalog, this.#table!, wanted);
    } catch (caught) {
      if (isFloeError(caught, 'invalid')) throw trouble(caught.message, caught);
      throw caught;
    }
  }

  async #findDeadLetters(): Promise<void> {
    const { owner, config } = this.#options;
    const { catalog } = this.#deps;
    const found = await findTable(catalog, this.deadLetterIdentifier, owner);
    if (found.kind === 'recreated' && config['table.topic.recreated'] === 'replace') {
      await catalog.dropTable(this.deadLetterIdentifier, { purge: true });
    }
    if (found.kind === 'joinable' && owner.shared) {
      this.#deadLetters = await claimTable(catalog, found.table, owner);
    } else if (found.kind === 'own') this.#deadLetters = found.table;
    if (this.#deadLetters === undefined) return;
    const back = readBack(this.#deadLetters.metadata);
    if (back.kind === 'at') {
      this.#deadLetterOffsets = back.watermark.topics.get(owner.topicId) ?? new Map();
    }
  }

  async #createDeadLetters(): Promise<void> {
    if (this.#deadLetters !== undefined) return;
    const { owner } = this.#options;
    const identifier = this.deadLetterIdentifier;
    const found = await findTable(this.#deps.catalog, identifier, owner);
    if (found.kind === 'own') this.#deadLetters = found.table;
    else if (found.kind === 'recreated' || (found.kind === 'joinable' && owner.shared)) {
      this.#deadLetters = await claimTable(this.#deps.catalog, found.table, owner);
    } else if (found.kind === 'foreign' || found.kind === 'joinable') {
      throw trouble(
        `${tableText(identifier)} exists and isn't this topic's: rename it, or set table.topic.errors.tolerance to skip or none`,
      );
    } else {
      const proposed = DEAD_LETTER_TABLE;
      this.#deadLetters = await createTable(this.#deps.catalog, {
        identifier,
        owner,
        proposed,
        layout: DEAD_LETTER_LAYOUT,
      });
    }
  }

  #forgetSources(): void {
    this.#values = new Map();
    this.#keys = new Map();
    this.#json = new Map();
    this.#version += 1;
  }

  #expireUnknown(): void {
    if (this.#sources.latestExpired()) {
      this.#values.delete(LATEST_KEY);
      this.#keys.delete(LATEST_KEY);
      this.#version += 1;
    }
    if (!this.#sources.unknownExpired()) return;
    for (const sources of [this.#values, this.#keys]) {
      for (const [id, source] of sources) {
        const unknown = source.kind === 'refused' && source.reason === 'unknown_schema_id';
        if (unknown) sources.delete(id);
      }
    }
    this.#version += 1;
  }
}

function isBound(sources: ReadonlyMap<SourceKey, SourceBinding>, key: SourceKey): boolean {
  const source = sources.get(splitKey(key).schema);
  return source !== undefined && (source.kind !== 'messages' || sources.has(key));
}

const tableText = ({ namespace, name }: TableIdentifier) =>
  `table ${[...namespace, name].join('.')}`;

const wantedLayout = (config: BindingOptions['config']): WantedLayout => ({
  partitionBy: config['table.topic.partition.by'],
  sortBy: config['table.topic.sort.by'],
  renames: config['table.topic.columns.rename'],
  formatVersion: config['table.topic.format.version'],
  identifiers: wantedIdentifiers(config),
  properties: config.properties,
});

/** Whatever the table is like: engines that read no v3 shall read what went wrong. */
const DEAD_LETTER_LAYOUT: WantedLayout = {
  partitionBy: [],
  sortBy: [],
  renames: [],
  formatVersion: 2,
  identifiers: [],
  properties: {},
};

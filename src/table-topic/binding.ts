// A topic's table as its jobs see it: opened in the catalog, evolved when records need it, handed to workers as
// plain data with committed ids. One change at a time (rule T10), so everything that changes it takes one mutex.
// Not for: whose table it is (own-table.ts), which columns it should have (wanted-columns.ts), where those of a schema
// are (bound-sources.ts), dead letters (dead-letter-binding.ts), reading, staging, committing.
import { assert } from '../base/assert.ts';
import { isFloeError } from '../base/error.ts';
import { Mutex } from '../base/queue.ts';
import type { Catalog, LoadedTable, TableIdentifier } from '../catalog/catalog.ts';
import type { ProposedStruct } from '../formats/arrow/proposed-schema.ts';
import { currentSchema, dataFolder, findField } from '../formats/iceberg/index.ts';
import type { TableMetadata } from '../formats/iceberg/types.ts';
import { BoundSources, type PlacedColumns } from './bound-sources.ts';
import { createTable, evolveTable, fileTable, loadSame } from './catalog-table.ts';
import { DeadLetterBinding } from './dead-letter-binding.ts';
import { evolve } from './evolve.ts';
import { fieldMapOf } from './field-map.ts';
import type { DeadLetterTable, JobNeeds, JobTable } from './job.ts';
import { furtherTypes, without } from './json-source.ts';
import { dropped, ownTable, type TablePlace } from './own-table.ts';
import type { SystemColumn } from './settings/index.ts';
import { SYSTEM_COLUMNS } from './settings/index.ts';
import type { TopicSourcesDeps } from './sources/topic-sources.ts';
import { systemPath } from './system-columns.ts';
import { conformTable, type WantedLayout } from './table-layout.ts';
import { trouble } from './trouble.ts';
import { wantedIdentifiers } from './upsert/identifiers.ts';
import {
  chosenColumns,
  declaredColumns,
  knownColumns,
  standingColumns,
  withStanding,
} from './wanted-columns.ts';
import type { Offsets } from './watermark.ts';

export interface BindingDeps extends TopicSourcesDeps {
  readonly catalog: Catalog;
}

export class TableBinding {
  readonly #catalog: Catalog;
  readonly #place: TablePlace;
  readonly #mutex = new Mutex();
  readonly #sources: BoundSources;
  readonly #deadLetters: DeadLetterBinding;
  #table: LoadedTable | undefined;

  constructor(deps: BindingDeps, place: TablePlace) {
    this.#catalog = deps.catalog;
    this.#place = place;
    const { owner, config } = place;
    this.#sources = new BoundSources(
      deps,
      { topicName: owner.topicName, config },
      (proposed, mayRename) => this.#evolve(proposed, mayRename),
    );
    this.#deadLetters = new DeadLetterBinding(deps.catalog, place);
  }

  get identifier(): TableIdentifier {
    return this.#place.identifier;
  }

  get table(): LoadedTable | undefined {
    return this.#table;
  }

  get deadLetterTable(): LoadedTable | undefined {
    return this.#deadLetters.table;
  }

  get deadLetterIdentifier(): TableIdentifier {
    return this.#deadLetters.identifier;
  }

  /**
   * Finds the table, or creates it when its columns are known. False: they will only be known from records.
   * @throws FloeError with `details.trouble` when somebody has to decide; `unavailable`, `timeout` otherwise.
   */
  open(): Promise<boolean> {
    return this.#mutex.run(async () => {
      const place = this.#place;
      this.#table = await ownTable(this.#catalog, place);
      if (this.#table === undefined) {
        if (place.tableUuid !== '') throw dropped(place.identifier);
        const proposed = await knownColumns(place.config, () => this.#sources.newest());
        if (proposed !== undefined) await this.#create(proposed);
      }
      await this.#deadLetters.find();
      if (this.#table === undefined) return false;
      await this.#evolve(standingColumns(place.config), false);
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
      for (const columns of needs.schemas ?? [])
        await this.#evolve(chosenColumns(this.#place.config, columns), false);
      for (const key of needs.valueSchemas) await this.#sources.bind(key, 'value');
      for (const key of needs.keySchemas) await this.#sources.bind(key, 'key');
      if (this.#table === undefined) await this.#createWithoutColumns();
      if (needs.deadLetterTable) await this.#deadLetters.create();
      this.#sources.changed();
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
    if (!same) this.#sources.forget();
  }

  observeDeadLetters(metadata: TableMetadata, offsets: Offsets): void {
    this.#deadLetters.observe(metadata, offsets);
  }

  /** Loads the table again and binds everything anew: after a discarded stage (T8). */
  reload(): Promise<void> {
    return this.#mutex.run(async () => {
      const before = this.#table;
      if (before === undefined) return;
      const uuid = before.metadata['table-uuid'];
      this.#table = await loadSame(this.#catalog, this.#place.identifier, uuid);
      this.#sources.forget();
      await this.#evolve(standingColumns(this.#place.config), false);
    });
  }

  /** How far the table of dead letters is. */
  get deadLetterOffsets(): Offsets {
    return this.#deadLetters.offsets;
  }

  deadLettersFrom(partition: number): number {
    return this.#deadLetters.offsets.get(partition) ?? 0;
  }

  /** What a job needs to write; undefined while the table doesn't exist. */
  jobTable(): JobTable | undefined {
    this.#sources.expire();
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
      key: `${metadata['table-uuid']}/${schema['schema-id']}/${specId}/${this.#sources.version}/${this.#place.config['table.topic.convert.value.type']}`,
      name: [...identifier.namespace, identifier.name].join('.'),
      ...fileTable(metadata),
      dataFolder: dataFolder(metadata),
      system,
      fields,
      bindings: new Map([
        ...[...fields].filter(([, id]) => findField(schema, id) !== undefined),
        ...this.#sources.paths,
      ]),
      values: this.#sources.values,
      keys: this.#sources.keys,
    };
  }

  jobDeadLetters(): DeadLetterTable | undefined {
    return this.#deadLetters.job();
  }

  /** Gives a table the columns that the config declares. @throws trouble when one is there with another type. */
  async #declare(): Promise<void> {
    const declared = declaredColumns(this.#place.config);
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

  async #create(proposed: ProposedStruct): Promise<void> {
    const { identifier, owner, config } = this.#place;
    try {
      this.#table = await createTable(this.#catalog, {
        identifier,
        owner,
        proposed,
        layout: wantedLayout(config),
      });
    } catch (caught) {
      if (isFloeError(caught, 'conflict')) this.#table = await ownTable(this.#catalog, this.#place);
      else if (isFloeError(caught, 'invalid')) throw trouble(caught.message, caught);
      else throw caught;
    }
    assert(this.#table !== undefined, 'a created table is there');
    await this.#evolve(standingColumns(config), false);
  }

  /** Nothing that came has columns (all of it dead letters): the table starts with the system's. */
  async #createWithoutColumns(): Promise<void> {
    await this.#create(standingColumns(this.#place.config));
  }

  /** Asks the table for columns and returns where they are; creates the table when there is none. */
  async #evolve(
    proposed: ProposedStruct,
    mayRename: boolean,
    revive = false,
  ): Promise<PlacedColumns> {
    const { identifier, config } = this.#place;
    if (this.#table === undefined) await this.#create(withStanding(config, proposed));
    const policy = config['table.topic.evolution.incompatible'];
    const { table, evolution } = await evolveTable(this.#catalog, {
      identifier,
      tableUuid: this.#table!.metadata['table-uuid'],
      proposed,
      newColumns: policy === 'new_column',
      mayRename,
      revive,
    });
    const before = this.#table!.metadata['current-schema-id'];
    this.#table = table;
    if (before !== table.metadata['current-schema-id']) this.#sources.changed();
    const [first] = evolution.conflicts;
    if (first !== undefined && policy === 'suspend') {
      throw trouble(
        `column "${first.column}" is ${first.columnType} and the source now writes ${first.sourceType} (table.topic.evolution.incompatible=suspend)`,
      );
    }
    const { bindings, conflicts } = evolution;
    // Kept for reads by path of what isn't a schema's.
    this.#sources.notePaths(bindings);
    return { bindings, conflicts: policy === 'dlq' ? conflicts : [] };
  }

  async #bindJson(columns: ProposedStruct): Promise<void> {
    const { config } = this.#place;
    const policy = config['table.topic.evolution.incompatible'];
    const fields = this.#table === undefined ? new Map() : fieldMapOf(this.#table.metadata);
    const further = policy === 'new_column' ? [] : furtherTypes(columns, fields);
    if (further.length > 0 && policy === 'suspend') {
      throw trouble(
        `values need further columns ${further.join(', ')} because a field changed its type (table.topic.evolution.incompatible=suspend)`,
      );
    }
    await this.#evolve(chosenColumns(config, without(columns, further)), false, true);
  }

  async #conform(): Promise<void> {
    try {
      const wanted = wantedLayout(this.#place.config);
      this.#table = await conformTable(this.#catalog, this.#table!, wanted);
    } catch (caught) {
      if (isFloeError(caught, 'invalid')) throw trouble(caught.message, caught);
      throw caught;
    }
  }
}

const wantedLayout = (config: TablePlace['config']): WantedLayout => ({
  partitionBy: config['table.topic.partition.by'],
  sortBy: config['table.topic.sort.by'],
  renames: config['table.topic.columns.rename'],
  formatVersion: config['table.topic.format.version'],
  identifiers: wantedIdentifiers(config),
  properties: config.properties,
});

// The table of a topic's dead letters, as its jobs see it: found when the topic's table is, created with the first letter.
// It is as it is: no layout, no evolution, so that whatever reads tables reads what went wrong.
// Not for: committing letters (table-commits.ts), topics of dead letters (letter-topics.ts).
import type { Catalog, LoadedTable, TableIdentifier } from '../catalog/catalog.ts';
import { dataFolder } from '../formats/iceberg/index.ts';
import type { TableMetadata } from '../formats/iceberg/types.ts';
import { claimTable, createTable, fileTable, findTable } from './catalog-table.ts';
import type { DeadLetterTable } from './job.ts';
import type { TablePlace } from './own-table.ts';
import { DEAD_LETTER_TABLE } from './system-columns.ts';
import type { WantedLayout } from './table-layout.ts';
import { tableText, trouble } from './trouble.ts';
import { type Offsets, readBack } from './watermark.ts';

/** Whatever the topic's table is like: engines that read no v3 shall read what went wrong. */
const LAYOUT: WantedLayout = {
  partitionBy: [],
  sortBy: [],
  renames: [],
  formatVersion: 2,
  identifiers: [],
  properties: {},
};

export class DeadLetterBinding {
  readonly #catalog: Catalog;
  readonly #place: TablePlace;
  #table: LoadedTable | undefined;
  /** Offsets below which dead letters are committed already. */
  #offsets: Offsets = new Map();

  /** `place`: of the topic's table. */
  constructor(catalog: Catalog, place: TablePlace) {
    this.#catalog = catalog;
    this.#place = place;
  }

  get table(): LoadedTable | undefined {
    return this.#table;
  }

  get identifier(): TableIdentifier {
    const { namespace, name } = this.#place.identifier;
    return { namespace, name: `${name}_dlq` };
  }

  /** How far the table is. */
  get offsets(): Offsets {
    return this.#offsets;
  }

  /** Takes note of the table as a commit left it. */
  observe(metadata: TableMetadata, offsets: Offsets): void {
    if (this.#table !== undefined) this.#table = { ...this.#table, metadata };
    this.#offsets = offsets;
  }

  /** What a job needs to write; undefined while the table doesn't exist. */
  job(): DeadLetterTable | undefined {
    if (this.#table === undefined) return undefined;
    const { metadata } = this.#table;
    return {
      key: metadata['table-uuid'],
      ...fileTable(metadata),
      dataFolder: dataFolder(metadata),
    };
  }

  /** Looks for it, and how far it is. What is somebody else's is left alone until a letter comes. */
  async find(): Promise<void> {
    const { owner, config } = this.#place;
    const found = await findTable(this.#catalog, this.identifier, owner);
    if (found.kind === 'recreated' && config['table.topic.recreated'] === 'replace') {
      await this.#catalog.dropTable(this.identifier, { purge: true });
    }
    if (found.kind === 'joinable' && owner.shared) {
      this.#table = await claimTable(this.#catalog, found.table, owner);
    } else if (found.kind === 'own') this.#table = found.table;
    if (this.#table === undefined) return;
    const back = readBack(this.#table.metadata);
    if (back.kind === 'at') {
      this.#offsets = back.watermark.topics.get(owner.topicId) ?? new Map();
    }
  }

  /** Creates it unless it is there. @throws FloeError with `details.trouble` when its name is somebody else's. */
  async create(): Promise<void> {
    if (this.#table !== undefined) return;
    const { owner } = this.#place;
    const { identifier } = this;
    const found = await findTable(this.#catalog, identifier, owner);
    if (found.kind === 'own') this.#table = found.table;
    else if (found.kind === 'recreated' || (found.kind === 'joinable' && owner.shared)) {
      this.#table = await claimTable(this.#catalog, found.table, owner);
    } else if (found.kind === 'foreign' || found.kind === 'joinable') {
      throw trouble(
        `${tableText(identifier)} exists and isn't this topic's: rename it, or set table.topic.errors.tolerance to skip or none`,
      );
    } else {
      const proposed = DEAD_LETTER_TABLE;
      const table = { identifier, owner, proposed, layout: LAYOUT };
      this.#table = await createTable(this.#catalog, table);
    }
  }
}

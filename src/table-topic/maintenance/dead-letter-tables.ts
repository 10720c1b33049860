// The dead-letter tables of tables that other nodes coordinate: which there are, for those who look after their files.
// Looked up in the catalog now and then; a new one is looked after some minutes later.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Catalog, TableIdentifier } from '../../catalog/catalog.ts';
import type { TableRecord } from '../../metadata/tables.ts';
import { findTable } from '../catalog-table.ts';

export interface DeadLetterTablesDeps {
  readonly catalog: Catalog;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface FoundLetters {
  readonly identifier: TableIdentifier;
  readonly metadata: { readonly 'table-uuid': string };
}

interface Known {
  readonly found: FoundLetters | undefined;
  /** Monotonic. */
  readonly atMs: number;
}

/** Between two looks for one table's. */
const LOOK_MS = 300_000;
/** Tables remembered; beyond, all are looked up again. */
const MAX_KNOWN = 100_000;

export class DeadLetterTables {
  readonly #deps: DeadLetterTablesDeps;
  readonly #known = new Map<string, Known>();

  constructor(deps: DeadLetterTablesDeps) {
    this.#deps = deps;
  }

  /** As of the last look; undefined when there was none. */
  of(record: TableRecord): FoundLetters | undefined {
    const known = this.#known.get(record.tableUuid);
    const now = this.#deps.clock.monotonic();
    if (known === undefined || now - known.atMs >= LOOK_MS) {
      if (this.#known.size >= MAX_KNOWN) this.#known.clear();
      // Said before the answer is there, so that it isn't asked for twice.
      this.#known.set(record.tableUuid, { found: known?.found, atMs: now });
      void this.#look(record);
    }
    return known?.found;
  }

  async #look({ namespace, table, tableUuid, topicId, topicName }: TableRecord): Promise<void> {
    const identifier = { namespace, name: `${table}_dlq` };
    try {
      const owner = { topicId, topicName, shared: false };
      const answer = await findTable(this.#deps.catalog, identifier, owner);
      const found = answer.kind === 'own' ? answer.table : undefined;
      const atMs = this.#deps.clock.monotonic();
      this.#known.set(tableUuid, {
        found: found === undefined ? undefined : { identifier, metadata: found.metadata },
        atMs,
      });
    } catch (caught) {
      this.#deps.logger.debug(
        { table: identifier, error: FloeError.from(caught).message },
        'no look at a table of dead letters',
      );
    }
  }
}

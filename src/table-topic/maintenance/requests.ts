// Commits of maintenance: each is derived from the table as just loaded, sent, and its fate found out (rules T3–T6).
// Only optimistic concurrency stands between these commits and the coordinator's or anybody's: a request asserts the
// table's uuid, `main` and the schema, and a refused one is derived afresh.
// Not for: what is in a commit (derive.ts on the worker's side).
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { IdSource, Prng } from '../../base/prng.ts';
import type { Catalog, LoadedTable, TableIdentifier } from '../../catalog/catalog.ts';
import type { Warehouse } from '../../catalog/index.ts';
import type { PreparedCommit } from '../../formats/iceberg/commit.ts';
import type { TableMetadata } from '../../formats/iceberg/types.ts';
import type { Intent, TablesMetadata } from '../../metadata/tables.ts';
import {
  ancestry,
  assertedMain,
  LETTERS_PARENT,
  movedPast,
  parseWatermark,
  WATERMARK_PROPERTY,
} from '../watermark.ts';

/** In the summary of every snapshot that maintenance makes; own commits of rows have another key (watermark.ts). */
export const MAINTENANCE_ID_SUMMARY = 'floe.maintenance-id';

/** A table under maintenance. */
export interface MaintainedTable {
  readonly topicId: string;
  readonly identifier: TableIdentifier;
  /** The dead-letter table of `identifier`'s, or the table itself. */
  readonly role: 'data' | 'deadLetters';
  /** What intents say: the name of the main table. */
  readonly mainName: string;
  readonly tableUuid: string;
  readonly epoch: number;
}

export interface RequestDeps {
  readonly catalog: Catalog;
  readonly warehouse: Warehouse;
  readonly tables: TablesMetadata;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly logger: Logger;
  /** Names that the sweep leaves alone while this process is at them. */
  readonly jobsUnderWay: Set<string>;
}

/**
 * The table as it is now, when it is still ours to maintain.
 * @throws FloeError `conflict` (T3: another table of that name; T6: a higher epoch), or the catalog's.
 */
export async function loadOwn(deps: RequestDeps, table: MaintainedTable): Promise<LoadedTable> {
  const loaded = await deps.catalog.loadTable(table.identifier);
  const { metadata } = loaded;
  if (metadata['table-uuid'] !== table.tableUuid)
    throw new FloeError('conflict', 'T3: the table was replaced by another of its name');
  const text = metadata.properties?.[WATERMARK_PROPERTY];
  if (text !== undefined) {
    const { epoch, topicId } = parseWatermark(text);
    if (topicId === table.topicId && epoch > table.epoch)
      throw new FloeError('conflict', `T6: a coordinator of epoch ${epoch} is at work`);
  }
  return loaded;
}

/**
 * Records names of files to be written or deleted (M2). `named`: by the request that asserts this metadata's `main`; or by
 * `none` under way any more: all that counts is whether a snapshot needs them. Undefined: no request names them yet.
 */
export function intentsOf(
  deps: RequestDeps,
  table: MaintainedTable,
  prefixes: readonly string[],
  named: TableMetadata | 'none' | undefined,
): Intent[] {
  const text = named === undefined || named === 'none' ? '' : assertedMain(named);
  const parent = table.role === 'data' ? text : `${LETTERS_PARENT}${text}`;
  return prefixes.map((prefix) => ({
    prefix,
    topicId: table.topicId,
    createdMs: deps.clock.now(),
    namespace: table.identifier.namespace,
    table: table.mainName,
    parent: named === undefined ? null : parent,
  }));
}

/** A request on its way or answered. */
export interface Sent {
  readonly commitId: string;
  readonly parent: bigint | undefined;
  /** Files of this attempt alone. */
  readonly objects: readonly string[];
}

export type Answer =
  | { readonly kind: 'accepted'; readonly metadata: TableMetadata }
  | { readonly kind: 'refused'; readonly error: FloeError }
  | { readonly kind: 'unanswered'; readonly error: FloeError };

export interface SendRequest {
  readonly prepared: PreparedCommit;
  readonly sent: Sent;
  /** What the commit was prepared from. */
  readonly metadata: TableMetadata;
  /** Data files that it adds. */
  readonly files: readonly string[];
  /**
   * The intent under which the files were written, of the first request that names them: it says that none does, so it
   * is exchanged for their names in one transaction. A sweep that was first keeps the request from being sent.
   */
  readonly instead?: string;
}

/** Writes the attempt's files and sends it. @throws what kept it from being sent. */
export async function sendPrepared(
  deps: RequestDeps,
  table: MaintainedTable,
  request: SendRequest,
): Promise<Answer> {
  const { prepared, sent, metadata, files, instead } = request;
  const names = [...sent.objects, ...files];
  await deps.tables.addIntents(intentsOf(deps, table, names, metadata), instead);
  for (const { path, bytes } of prepared.objects) await deps.warehouse.write(path, bytes);
  try {
    const { requirements, updates } = prepared;
    const after = await deps.catalog.commitTable(table.identifier, { requirements, updates });
    return { kind: 'accepted', metadata: after.metadata };
  } catch (caught) {
    const error = FloeError.from(caught);
    // T5: the catalog answered this very request with a refusal.
    const refused = isFloeError(
      error,
      'conflict',
      'invalid',
      'unauthorized',
      'unsupported',
      'not-found',
    );
    return { kind: refused ? 'refused' : 'unanswered', error };
  }
}

/** What history says of a request: it is in, it can't come in any more, or nothing yet. */
export function fateOf(metadata: TableMetadata, sent: Sent): 'found' | 'disproved' | 'open' {
  const landed = ancestry(metadata).some(
    (snapshot) => snapshot.summary?.[MAINTENANCE_ID_SUMMARY] === sent.commitId,
  );
  if (landed) return 'found';
  return movedPast(metadata, sent.parent) ? 'disproved' : 'open';
}

/** Deletes files of attempts that can't come in any more; what fails is left to the sweep. */
export async function discard(deps: RequestDeps, names: readonly string[]): Promise<void> {
  try {
    await deps.warehouse.delete(names);
    await deps.tables.dropIntents(names);
  } catch (caught) {
    deps.logger.warn(
      { error: FloeError.from(caught).message },
      'files of a refused rewrite are left to the sweep',
    );
  }
}

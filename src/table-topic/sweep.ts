// Deletes files that jobs and refused commits left behind (rule M2): only our own names, recorded before they were
// written, old enough, neither staged nor in a retained snapshot.
// Not for: files nobody recorded (an operator's opt-in, later).
import type { Clock } from '../base/clock.ts';
import { FloeError, isFloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { Catalog, TableIdentifier } from '../catalog/catalog.ts';
import type { Warehouse } from '../catalog/index.ts';
import type { TableMetadata } from '../formats/iceberg/types.ts';
import type { Intent, TablesMetadata } from '../metadata/tables.ts';
import { visitFiles } from './maintenance/reach.ts';
import { PrefixSet } from './prefix-set.ts';
import { LETTERS_PARENT, movedPastAsserted } from './watermark.ts';

/** Intents looked at together: a table that they name is read once for all of them. */
const PAGE = 1_000;

/** Pages of a pass: what is older is never kept from its turn by what must wait, up to so much. */
const PAGES_PER_PASS = 200;

/** A request whose fate history doesn't tell is taken for lost after this long: none stays under way for a day. */
const UNPROVEN_MS = 86_400_000;

export interface SweepDeps {
  readonly tables: TablesMetadata;
  readonly catalog: Catalog;
  readonly warehouse: Warehouse;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ageMs: number;
  /** Prefixes that are being written to now. */
  readonly jobsUnderWay: ReadonlySet<string>;
}

/** One pass. Returns how many files it deleted. */
export async function sweep(deps: SweepDeps): Promise<number> {
  const beforeMs = deps.clock.now() - deps.ageMs;
  let deleted = 0;
  let last: Intent | undefined;
  for (let page = 0; page < PAGES_PER_PASS; page += 1) {
    const intents = await deps.tables.intents(beforeMs, PAGE, last);
    deleted += await sweepPage(deps, intents);
    if (intents.length < PAGE) break;
    last = intents.at(-1);
  }
  return deleted;
}

async function sweepPage(deps: SweepDeps, page: readonly Intent[]): Promise<number> {
  const idle = page.filter(({ prefix }) => !deps.jobsUnderWay.has(prefix));
  // Commits sent just before their topic was deleted: their age begins now.
  const reborn = idle.filter(({ parent, createdMs }) => parent !== null && createdMs === 0);
  const createdMs = deps.clock.now();
  if (reborn.length > 0)
    await deps.tables.addIntents(reborn.map((intent) => ({ ...intent, createdMs })));
  const unasked = idle.filter(({ parent }) => parent === null);
  let deleted = await quietly(deps, unasked, () => remove(deps, unasked));
  const asked = idle.filter((intent) => intent.parent !== null && intent.createdMs > 0);
  const byTable = Object.groupBy(asked, ({ namespace, table }) => [...namespace, table].join('.'));
  for (const intents of Object.values(byTable)) {
    deleted += await quietly(deps, intents!, () => sweepTable(deps, intents!));
  }
  return deleted;
}

/** T9: trouble with one table's files leaves the others their turn. */
async function quietly(
  { logger }: SweepDeps,
  intents: readonly Intent[],
  work: () => Promise<number>,
): Promise<number> {
  try {
    return await work();
  } catch (caught) {
    const { message } = FloeError.from(caught);
    logger.warn({ prefix: intents[0]?.prefix, error: message }, 'not swept this time');
    return 0;
  }
}

/** Deletes the files of intents that nothing names, those that nobody has named since. */
async function remove(
  { tables, warehouse }: SweepDeps,
  intents: readonly Intent[],
): Promise<number> {
  if (intents.length === 0) return 0;
  const claimed = await tables.claimIntents(intents);
  const files: string[] = [];
  for (const prefix of claimed) for await (const { uri } of warehouse.list(prefix)) files.push(uri);
  if (files.length > 0) await warehouse.delete(files);
  await tables.dropIntents(claimed);
  return files.length;
}

/**
 * T5: files that a commit request named are unused when history moved past what it asserted and no snapshot names
 * them; until it has, the request may still arrive. A table that is gone from the catalog may have been dropped to live
 * elsewhere: its files count as used, a drop with purge takes them. `intents`: of one table.
 */
async function sweepTable(deps: SweepDeps, intents: readonly Intent[]): Promise<number> {
  const { clock } = deps;
  const { namespace, table } = intents[0]!;
  const main = await load(deps, { namespace, name: table });
  if (main === undefined) return forget(deps, intents);
  const letters = await load(deps, { namespace, name: `${table}_dlq` });
  const settled = intents.filter(
    ({ parent, createdMs }) =>
      clock.now() - createdMs >= UNPROVEN_MS || provenOut(parent!, { main, letters }),
  );
  if (settled.length === 0) return 0;
  const prefixes = new PrefixSet(settled.map(({ prefix }) => prefix));
  const used = new Set<string>();
  for (const metadata of [main, letters]) {
    if (metadata === undefined) continue;
    await visitFiles(metadata, deps.warehouse, (path, live) => {
      if (live) for (const prefix of prefixes.of(path)) used.add(prefix);
    });
  }
  await forget(
    deps,
    settled.filter(({ prefix }) => used.has(prefix)),
  );
  return remove(
    deps,
    settled.filter(({ prefix }) => !used.has(prefix)),
  );
}

/** Their files are somebody's. */
async function forget({ tables }: SweepDeps, intents: readonly Intent[]): Promise<number> {
  if (intents.length > 0) await tables.dropIntents(await tables.claimIntents(intents));
  return 0;
}

interface Pair {
  readonly main: TableMetadata;
  readonly letters: TableMetadata | undefined;
}

function provenOut(parent: string, { main, letters }: Pair): boolean {
  const ofLetters = parent.startsWith(LETTERS_PARENT);
  const metadata = ofLetters ? letters : main;
  const asserted = ofLetters ? parent.slice(LETTERS_PARENT.length) : parent;
  return metadata !== undefined && movedPastAsserted(metadata, asserted);
}

/** Undefined when the catalog has no such table. */
async function load({ catalog }: SweepDeps, identifier: TableIdentifier) {
  try {
    return (await catalog.loadTable(identifier)).metadata;
  } catch (caught) {
    // What was recorded by an older release may have no name.
    if (isFloeError(caught, 'not-found', 'invalid')) return undefined;
    throw caught;
  }
}

// Deletes files that jobs and refused commits left behind (rule M2): only our own names, recorded before they were
// written, old enough, neither staged nor in a retained snapshot.
// Not for: files nobody recorded (an operator's opt-in, later).
import type { Clock } from '../base/clock.ts';
import { FloeError, isFloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { Catalog, TableIdentifier } from '../catalog/catalog.ts';
import type { Warehouse } from '../catalog/index.ts';
import { manifestsOf, readManifests, STATUS_DELETED } from '../formats/iceberg/index.ts';
import type { TableMetadata } from '../formats/iceberg/types.ts';
import type { Intent, TablesMetadata } from '../metadata/tables.ts';
import { LETTERS_PARENT, movedPastAsserted } from './watermark.ts';

/** Intents looked at in one pass. */
const INTENTS_PER_PASS = 500;

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
  const { tables, clock, ageMs } = deps;
  const old = await tables.intents(clock.now() - ageMs, INTENTS_PER_PASS);
  let deleted = 0;
  for (const intent of old) {
    if (deps.jobsUnderWay.has(intent.prefix)) continue;
    // A commit sent just before its topic was deleted: its age begins now.
    if (intent.parent !== null && intent.createdMs === 0) {
      await tables.addIntents([{ ...intent, createdMs: clock.now() }]);
    } else deleted += await sweepOne(deps, intent);
  }
  return deleted;
}

async function sweepOne(deps: SweepDeps, intent: Intent): Promise<number> {
  const { tables, warehouse, logger } = deps;
  try {
    const fate = intent.parent === null ? 'unused' : await fateOf(deps, intent);
    if (fate === 'open') return 0;
    if ((await tables.claimIntents([intent])).length === 0) return 0;
    const files: string[] = [];
    if (fate === 'unused') {
      for await (const { uri } of warehouse.list(intent.prefix)) files.push(uri);
    }
    if (files.length > 0) await warehouse.delete(files);
    await tables.dropIntents([intent.prefix]);
    return files.length;
  } catch (caught) {
    logger.warn(
      { prefix: intent.prefix, error: FloeError.from(caught).message },
      'not swept this time',
    );
    return 0;
  }
}

/**
 * T5: files that a commit request named are `unused` when history moved past what it asserted and no snapshot names
 * them. A table that is gone from the catalog may have been dropped to live elsewhere: its files count as used, a
 * drop with purge takes them.
 */
async function fateOf(deps: SweepDeps, intent: Intent): Promise<'used' | 'unused' | 'open'> {
  const { namespace, table } = intent;
  const main = await load(deps, { namespace, name: table });
  if (main === undefined || (await names(deps, main, intent.prefix))) return 'used';
  const letters = await load(deps, { namespace, name: `${table}_dlq` });
  if (letters !== undefined && (await names(deps, letters, intent.prefix))) return 'used';
  if (deps.clock.now() - intent.createdMs >= UNPROVEN_MS) return 'unused';
  return provenOut(intent.parent!, { main, letters }) ? 'unused' : 'open';
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

/** Whether a retained snapshot has a file whose name starts so. */
async function names({ warehouse }: SweepDeps, metadata: TableMetadata, prefix: string) {
  for (const snapshot of metadata.snapshots ?? []) {
    if (snapshot['manifest-list'] === prefix) return true;
    const manifests = await manifestsOf(warehouse, snapshot);
    if (manifests.some((manifest) => manifest.manifestPath === prefix)) return true;
    // Metadata is named in full.
    if (prefix.endsWith('.avro')) continue;
    const entries = await readManifests(warehouse, metadata, manifests);
    // An entry that says a file was deleted needs it no more than one that isn't there.
    const live = entries.flat().filter(({ status }) => status !== STATUS_DELETED);
    if (live.some(({ file }) => file.filePath.startsWith(prefix))) return true;
  }
  return false;
}

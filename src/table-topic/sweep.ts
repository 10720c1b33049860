// Deletes files that jobs and refused commits left behind (rule M2): only our own names, recorded before they were
// written, old enough, neither staged nor in a retained snapshot.
// Not for: files nobody recorded (an operator's opt-in, later).
import type { Clock } from '../base/clock.ts';
import { FloeError, isFloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Warehouse } from '../catalog/index.ts';
import { manifestsOf } from '../formats/iceberg/index.ts';
import type { Intent, TableRecord, TablesMetadata } from '../metadata/tables.ts';

/** Intents looked at in one pass. */
const INTENTS_PER_PASS = 500;

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
  const idle = old.filter((intent) => !deps.jobsUnderWay.has(intent.prefix));
  if (idle.length === 0) return 0;
  const records = new Map((await tables.list()).map((record) => [record.topicId, record]));
  let deleted = 0;
  for (const intent of idle) deleted += await sweepOne(deps, intent, records.get(intent.topicId));
  return deleted;
}

async function sweepOne(
  deps: SweepDeps,
  intent: Intent,
  record: TableRecord | undefined,
): Promise<number> {
  const { tables, warehouse, logger } = deps;
  try {
    const claimed = await tables.claimIntents([intent.prefix]);
    if (claimed.length === 0) return 0;
    // Only commits can have been applied without our knowing: a job's files enter a commit by a stage, which
    // would have ended the intent.
    const used = isCommitFile(intent.prefix) && (await isReferenced(deps, intent.prefix, record));
    const files: string[] = [];
    if (!used) for await (const { uri } of warehouse.list(intent.prefix)) files.push(uri);
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

const isCommitFile = (prefix: string) => prefix.endsWith('.avro');

/** Whether a retained snapshot of the topic's tables has this manifest or manifest list. */
async function isReferenced(
  { catalog, warehouse }: SweepDeps,
  path: string,
  record: TableRecord | undefined,
): Promise<boolean> {
  // The topic is gone and so is the word about its table: leave the file, a drop with purge takes it.
  if (record === undefined) return true;
  for (const name of [record.table, `${record.table}_dlq`]) {
    let snapshots: NonNullable<Awaited<ReturnType<Catalog['loadTable']>>['metadata']['snapshots']>;
    try {
      const loaded = await catalog.loadTable({ namespace: record.namespace, name });
      snapshots = loaded.metadata.snapshots ?? [];
    } catch (caught) {
      if (isFloeError(caught, 'not-found')) continue;
      throw caught;
    }
    for (const snapshot of snapshots) {
      if (snapshot['manifest-list'] === path) return true;
      const manifests = await manifestsOf(warehouse, snapshot);
      if (manifests.some((manifest) => manifest.manifestPath === path)) return true;
    }
  }
  return false;
}

// Goes on as an operator chose, from a table that somebody rolled back, rewrote, replaced or dropped: positions, staged
// ranges and dead letters go back together, so that a record that is read again and fails now is a letter, and one that is
// a letter already comes no second time. The store and the letters first, the table's watermark last: a crash in
// between leaves the table in its trouble, and the policy is asked for again.
// Not for: what a policy means for the watermark (../positions.ts).
import { isFloeError } from '../../base/error.ts';
import type { TableIdentifier } from '../../catalog/catalog.ts';
import type { TableRecord, TablesMetadata } from '../../metadata/tables.ts';
import type { Topic } from '../../metadata/topics.ts';
import type { Log } from '../../storage/log/log.ts';
import { backfillOffset, type RecoveryPolicy, recover } from '../positions.ts';
import type { Backfill } from '../settings/index.ts';
import type { Offsets } from '../watermark.ts';
import { lettersBack, type RewindDeps } from './rewind.ts';

export interface RecoverDeps extends Pick<RewindDeps, 'catalog' | 'ids'> {
  readonly tables: TablesMetadata;
  readonly log: Log;
  readonly clock: { now(): number };
}

export interface RecoverRequest {
  readonly topic: Topic;
  readonly identifier: TableIdentifier;
  readonly epoch: number;
  readonly policy: RecoveryPolicy;
  readonly backfill: Backfill;
}

/** @throws FloeError as the catalog and the store do; asked again it goes on. */
export async function recoverTable(
  deps: RecoverDeps,
  request: RecoverRequest,
): Promise<TableRecord> {
  const { catalog, tables, ids } = deps;
  const { topic, identifier, epoch, policy } = request;
  const { topicId } = topic;
  try {
    const options = { topicId, policy, epoch, commitId: ids.uuid() };
    await recover(catalog, identifier, options, (offsets) => goBack(deps, request, offsets));
  } catch (caught) {
    // Dropped: it will be made anew.
    if (!isFloeError(caught, 'not-found')) throw caught;
    await goBack(deps, request, new Map());
  }
  return tables.update(topicId, epoch, policy === 'restart' ? { tableUuid: '' } : {});
}

async function goBack(
  deps: RecoverDeps,
  { topic, identifier, epoch, backfill }: RecoverRequest,
  offsets: Offsets,
): Promise<void> {
  const { tables, log, clock } = deps;
  const { topicId, partitions } = topic;
  const positions = await Promise.all(
    partitions.map(async (partitionId, partition) => ({
      partition,
      offset: offsets.get(partition) ?? (await backfillOffset(log, partitionId, backfill)),
    })),
  );
  const to = new Map(positions.map(({ partition, offset }) => [partition, offset]));
  const lettersCommitted = await lettersBack(deps, { topicId, epoch, table: identifier, to });
  await tables.rewind(topicId, epoch, { positions, nowMs: clock.now(), lettersCommitted });
}

// Removes a table's expired snapshots, then the files that only they needed. The names of the files are recorded as
// intents before the snapshots go, so that what a crash leaves is swept; nothing is deleted before the catalog says
// that the snapshots are gone.
import { FloeError, isFloeError } from '../../base/error.ts';
import type { LoadedTable } from '../../catalog/catalog.ts';
import { chooseExpired, type ExpiryPolicy } from './expiry.ts';
import { intentsOf, type MaintainedTable, type RequestDeps } from './requests.ts';
import type { MaintenanceTasks } from './task.ts';

export interface ExpireDeps extends RequestDeps {
  readonly tasks: MaintenanceTasks;
}

export interface Expired {
  readonly snapshots: number;
  readonly files: number;
}

const NOTHING: Expired = { snapshots: 0, files: 0 };

/** Snapshots removed in one go: what they leave is held in memory. The oldest go first. */
const SNAPSHOTS_AT_ONCE = 1_000;

/**
 * One pass. `moved`: somebody committed in between, so what is needed has to be looked at again.
 * @throws FloeError of the catalog or the store.
 */
export async function expireSnapshots(
  deps: ExpireDeps,
  table: MaintainedTable,
  { loaded, policy }: { readonly loaded: LoadedTable; readonly policy: ExpiryPolicy },
): Promise<Expired | 'moved'> {
  const { metadata } = loaded;
  if (metadata.properties?.['gc.enabled'] === 'false') return NOTHING;
  const choice = chooseExpired(metadata, policy, deps.clock.now());
  const snapshots = choice.snapshots.slice(0, SNAPSHOTS_AT_ONCE);
  if (snapshots.length === 0 && choice.refs.length === 0) return NOTHING;
  const files = await deps.tasks.unreachable({ metadata, expiring: snapshots });
  await deps.tables.addIntents(intentsOf(deps, table, files, 'none'));
  const refs = Object.entries(metadata.refs ?? {});
  try {
    await deps.catalog.commitTable(table.identifier, {
      requirements: [
        { type: 'assert-table-uuid', uuid: metadata['table-uuid'] },
        // A branch or tag that moved or came may need what is about to go.
        ...refs.map(([ref, { 'snapshot-id': id }]) => ({
          type: 'assert-ref-snapshot-id',
          ref,
          'snapshot-id': id,
        })),
      ],
      updates: [
        ...choice.refs.map((name) => ({ action: 'remove-snapshot-ref', 'ref-name': name })),
        { action: 'remove-snapshots', 'snapshot-ids': snapshots },
      ],
    });
  } catch (caught) {
    const error = FloeError.from(caught);
    const refused = isFloeError(error, 'conflict', 'invalid', 'unauthorized', 'unsupported');
    // Refused: all of them are needed still. Else the table's next look tells, and the intents are swept by it.
    if (refused) await deps.tables.dropIntents(files);
    if (error.code === 'conflict') return 'moved';
    throw error;
  }
  await deps.warehouse.delete(files);
  await deps.tables.dropIntents(files);
  return { snapshots: snapshots.length, files: files.length };
}

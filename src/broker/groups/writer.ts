// Writes group changes in order, all that queued up meanwhile in one transaction: commits of many groups share one
// fsync. Not for: what the changes mean (coordinator.ts).
import { FloeError } from '../../base/error.ts';
import { BatchQueue } from '../../base/queue.ts';
import type { GroupChange, GroupsLease, GroupsMetadata } from '../../metadata/groups.ts';

interface Queued {
  readonly change: GroupChange;
  resolve(result: WriteResult): void;
}

export interface WriteResult {
  /** Set when it was not written, or nobody knows. */
  readonly error: FloeError | undefined;
  /** Partition ids whose topic was deleted meanwhile: their offsets were left out. */
  readonly gone: readonly number[];
}

/** Whoever takes changes to the store. */
export interface ChangeWriter {
  /** Resolves when the change is durable or has failed; never rejects. Changes land in order of calls. */
  write(change: GroupChange): Promise<WriteResult>;
}

/** What every write asserts. */
interface LeaseHolder {
  readonly lease: GroupsLease;
  /** The store said that it is another's. */
  lose(): void;
}

/** Changes in one transaction: bounds how long others wait for the store. */
const MAX_BATCH = 1_000;

export class GroupWriter implements ChangeWriter {
  readonly #metadata: Pick<GroupsMetadata, 'write'>;
  readonly #lease: LeaseHolder;
  readonly #queue = new BatchQueue<Queued>(MAX_BATCH, (queued) => this.#writeBatch(queued));
  /** Consumer groups of which the store missed a change: what builds on it fails too, until all is written anew. */
  readonly #behind = new Map<string, FloeError>();

  constructor(metadata: Pick<GroupsMetadata, 'write'>, lease: LeaseHolder) {
    this.#metadata = metadata;
    this.#lease = lease;
  }

  write(change: GroupChange): Promise<WriteResult> {
    return new Promise((resolve) => this.#queue.push({ change, resolve }));
  }

  /** Resolves when nothing is queued. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  async #writeBatch(queued: readonly Queued[]): Promise<void> {
    const batch = queued.filter((each) => !this.#refuse(each));
    if (batch.length === 0) return;
    let result: WriteResult;
    try {
      const changes = batch.map(({ change }) => change);
      const gone = await this.#metadata.write(changes, this.#lease.lease);
      result = { error: undefined, gone };
    } catch (caught) {
      const error = FloeError.from(caught);
      if (error.code === 'conflict') this.#lease.lose();
      for (const { change } of batch)
        if (change.kind === 'consumer-group') this.#behind.set(change.group.groupId, error);
      result = { error, gone: [] };
    }
    for (const { resolve } of batch) resolve(result);
  }

  /** True when the change builds on one that is missing; it has been answered then. */
  #refuse({ change, resolve }: Queued): boolean {
    const groupId = 'group' in change ? change.group.groupId : change.groupId;
    const isDelta = change.kind === 'consumer-group' && !change.whole;
    const error = this.#behind.get(groupId);
    if (error !== undefined && isDelta) resolve({ error, gone: [] });
    else if (change.kind !== 'offsets' && change.kind !== 'offsets-gone')
      this.#behind.delete(groupId);
    return error !== undefined && isDelta;
  }
}

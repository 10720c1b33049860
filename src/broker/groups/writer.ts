// Writes group changes in order, all that queued up meanwhile in one transaction, whatever their shards: commits of many
// groups share one fsync. Each asserts the lease of its shard. Not for: what the changes mean (coordinator.ts).
import { FloeError } from '../../base/error.ts';
import { BatchQueue } from '../../base/queue.ts';
import type { GroupChange, GroupsMetadata } from '../../metadata/groups.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import { shardOf } from '../../metadata/shards.ts';
import type { HeldShard } from '../shards.ts';

interface Change {
  readonly kind: 'change';
  readonly held: HeldShard;
  readonly change: GroupChange;
  resolve(result: WriteResult): void;
}

/** Something to be done while no write is under way. */
interface Pause {
  readonly kind: 'pause';
  work(): Promise<void>;
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
  write(held: HeldShard, change: GroupChange): Promise<WriteResult>;
}

/** Changes in one transaction: bounds how long others wait for the store. */
const MAX_BATCH = 1_000;

export class GroupWriter implements ChangeWriter {
  readonly #metadata: Pick<GroupsMetadata, 'write'>;
  readonly #refused: (token: LeaseToken) => void;
  readonly #queue = new BatchQueue<Change | Pause>(MAX_BATCH, (items) => this.#work(items));
  /** Consumer groups of which the store missed a change: what builds on it fails too, until all is written anew. */
  readonly #behind = new Map<string, FloeError>();
  /** Not yet answered, those under way among them. */
  readonly #open = new Set<Change>();
  #underWay: Promise<unknown> = Promise.resolve();

  /** `refused` is told of leases that the store says are another's. */
  constructor(metadata: Pick<GroupsMetadata, 'write'>, refused: (token: LeaseToken) => void) {
    this.#metadata = metadata;
    this.#refused = refused;
  }

  write(held: HeldShard, change: GroupChange): Promise<WriteResult> {
    return new Promise((resolve) => {
      const queued: Change = { kind: 'change', held, change, resolve };
      this.#open.add(queued);
      this.#queue.push(queued);
    });
  }

  /** Runs `work` after all changes before it, and before all after it. */
  between<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const quietly = () => work().then(resolve, reject);
      this.#queue.push({ kind: 'pause', work: quietly });
    });
  }

  /** The shard is over: nobody waits for its changes any more, nor learns what became of those under way. */
  drop(held: HeldShard): void {
    for (const queued of this.#open)
      if (queued.held === held) this.#answer(queued, { error: lost(held.token), gone: [] });
    for (const groupId of this.#behind.keys())
      if (shardOf(groupId) === held.shard) this.#behind.delete(groupId);
  }

  /** Resolves when nothing is queued. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  /** Resolves when what is under way now has ended. */
  async settled(): Promise<void> {
    await this.#underWay;
  }

  async #work(items: readonly (Change | Pause)[]): Promise<void> {
    let changes: Change[] = [];
    for (const item of items) {
      if (item.kind === 'change') {
        changes.push(item);
        continue;
      }
      await this.#writeBatch(changes);
      changes = [];
      await item.work();
    }
    await this.#writeBatch(changes);
  }

  async #writeBatch(queued: readonly Change[]): Promise<void> {
    const batch = queued.filter((each) => this.#open.has(each) && !this.#refuse(each));
    if (batch.length === 0) return;
    const error = await this.#attempt(batch);
    if (error === undefined) return;
    const shards = new Set(batch.map(({ held }) => held));
    // One shard that is another's is no fault of the others.
    if (error.code === 'conflict' && shards.size > 1)
      for (const held of shards) await this.#writeBatch(batch.filter((each) => each.held === held));
    else this.#failed(batch, error);
  }

  /** Undefined when it was written, and answered. */
  async #attempt(batch: readonly Change[]): Promise<FloeError | undefined> {
    try {
      const changes = batch.map(({ change }) => change);
      const writing = this.#metadata.write(changes, tokensOf(batch));
      this.#underWay = writing.catch(() => {});
      const gone = await writing;
      for (const each of batch) this.#answer(each, { error: undefined, gone });
      return undefined;
    } catch (caught) {
      return FloeError.from(caught);
    }
  }

  #failed(batch: readonly Change[], error: FloeError): void {
    for (const { change, held } of batch)
      if (change.kind === 'consumer-group' && !held.dropped)
        this.#behind.set(change.group.groupId, error);
    for (const each of batch) this.#answer(each, { error, gone: [] });
    if (error.code === 'conflict') this.#refused(batch[0]!.held.token);
  }

  #answer(queued: Change, result: WriteResult): void {
    if (this.#open.delete(queued)) queued.resolve(result);
  }

  /** True when the change may not be written any more, or builds on one that is missing; it has been answered then. */
  #refuse(queued: Change): boolean {
    const { change, held } = queued;
    if (held.dropped) {
      this.#answer(queued, { error: lost(held.token), gone: [] });
      return true;
    }
    const groupId = 'group' in change ? change.group.groupId : change.groupId;
    const isDelta = change.kind === 'consumer-group' && !change.whole;
    const error = this.#behind.get(groupId);
    if (error !== undefined && isDelta) this.#answer(queued, { error, gone: [] });
    else if (change.kind !== 'offsets' && change.kind !== 'offsets-gone')
      this.#behind.delete(groupId);
    return error !== undefined && isDelta;
  }
}

/** In the order in which stores lock them. */
function tokensOf(batch: readonly Change[]): readonly LeaseToken[] {
  const tokens = new Set(batch.map(({ held }) => held.token));
  return tokens.size === 1 ? [...tokens] : [...tokens].sort((a, b) => (a.name < b.name ? -1 : 1));
}

const lost = ({ name }: LeaseToken) =>
  new FloeError('conflict', `lease ${name} is no longer held by this node`);

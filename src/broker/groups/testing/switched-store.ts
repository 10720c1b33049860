// The groups' store with a switch for failures, and a record of its transactions.
import { FloeError } from '../../../base/error.ts';
import type { GroupChange, GroupsMetadata } from '../../../metadata/groups.ts';
import type { LeaseToken } from '../../../metadata/leases.ts';

export class SwitchedStore implements GroupsMetadata {
  failing = false;
  /** Those that were written. */
  readonly transactions: (readonly GroupChange[])[] = [];
  readonly #inner: GroupsMetadata;

  constructor(inner: GroupsMetadata) {
    this.#inner = inner;
  }

  load = (shards?: readonly number[]) => this.#inner.load(shards);
  offsets = (groupIds: readonly string[]) => this.#inner.offsets(groupIds);

  async write(changes: readonly GroupChange[], leases: readonly LeaseToken[]) {
    this.#check();
    const gone = await this.#inner.write(changes, leases);
    this.transactions.push(changes);
    return gone;
  }

  #check(): void {
    if (this.failing) throw new FloeError('unavailable', 'the store is away');
  }
}

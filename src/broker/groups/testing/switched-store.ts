// The groups' store with a switch for failures, and a record of its transactions.
import { FloeError } from '../../../base/error.ts';
import type { GroupChange, GroupsLease, GroupsMetadata } from '../../../metadata/groups.ts';
import type { LeaseToken } from '../../../metadata/leases.ts';

export class SwitchedStore implements GroupsMetadata {
  failing = false;
  /** Those that were written. */
  readonly transactions: (readonly GroupChange[])[] = [];
  readonly #inner: GroupsMetadata;

  constructor(inner: GroupsMetadata) {
    this.#inner = inner;
  }

  acquireLease = () => this.#inner.acquireLease();
  load = (shards?: readonly number[]) => this.#inner.load(shards);
  offsets = (groupIds: readonly string[]) => this.#inner.offsets(groupIds);

  async holdsLease(lease: GroupsLease) {
    this.#check();
    return this.#inner.holdsLease(lease);
  }

  async write(changes: readonly GroupChange[], leases: GroupsLease | readonly LeaseToken[]) {
    this.#check();
    const gone = await this.#inner.write(changes, leases);
    this.transactions.push(changes);
    return gone;
  }

  #check(): void {
    if (this.failing) throw new FloeError('unavailable', 'the store is away');
  }
}

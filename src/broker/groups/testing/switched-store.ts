// The groups' store with a switch for failures, and a record of its transactions.
import { FloeError } from '../../../base/error.ts';
import type { GroupChange, GroupsLease, GroupsMetadata } from '../../../metadata/groups.ts';

export class SwitchedStore implements GroupsMetadata {
  failing = false;
  /** Those that were written. */
  readonly transactions: (readonly GroupChange[])[] = [];
  readonly #inner: GroupsMetadata;

  constructor(inner: GroupsMetadata) {
    this.#inner = inner;
  }

  acquireLease = () => this.#inner.acquireLease();
  load = () => this.#inner.load();

  async holdsLease(lease: GroupsLease) {
    this.#check();
    return this.#inner.holdsLease(lease);
  }

  async write(changes: readonly GroupChange[], lease: GroupsLease) {
    this.#check();
    const gone = await this.#inner.write(changes, lease);
    this.transactions.push(changes);
    return gone;
  }

  #check(): void {
    if (this.failing) throw new FloeError('unavailable', 'the store is away');
  }
}

// What an assignor is given and gives, and the order of members in which it deals out partitions.
// Not for: who gets what (assign-range.ts, assign-uniform.ts).
import type { Partitions } from './partitions.ts';

export interface AssignedMember {
  readonly memberId: string;
  readonly instanceId: string | null;
  /** Partitions of each topic that the member subscribes to. Equal topics are the same array. */
  readonly topics: readonly Partitions[];
  /** What it was to own by the last assignment. */
  readonly target: Partitions;
}

/** Result in the order of `members`; every partition that somebody subscribes to is given to exactly one of those. */
export type Assignor = (members: readonly AssignedMember[]) => readonly Partitions[];

/** Static members first, by instance; then by member id: an order that no restart of a client changes. */
export function byIdentity(a: AssignedMember, b: AssignedMember): number {
  if (a.instanceId !== null && b.instanceId !== null) return compare(a.instanceId, b.instanceId);
  if (a.instanceId !== null) return -1;
  if (b.instanceId !== null) return 1;
  return compare(a.memberId, b.memberId);
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

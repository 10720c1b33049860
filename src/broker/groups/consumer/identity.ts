// The order of a group's members in which assignors deal out partitions.
// Not for: who gets what (assign-range.ts, assign-uniform.ts).
import type { AssignedMember } from './assignors.ts';

/** Static members first, by instance; then by member id: an order that no restart of a client changes. */
export function byIdentity(a: AssignedMember, b: AssignedMember): number {
  if (a.instanceId !== null && b.instanceId !== null) return compare(a.instanceId, b.instanceId);
  if (a.instanceId !== null) return -1;
  if (b.instanceId !== null) return 1;
  return compare(a.memberId, b.memberId);
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

// The server-side assignors of consumer groups (KIP-848), by name. An assignor is a pure function: who subscribes to
// what, and what each shall own by the last assignment → what each shall own now.
import { assignRange } from './assign-range.ts';
import { assignUniform } from './assign-uniform.ts';
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

const ASSIGNORS: Readonly<Record<string, Assignor>> = {
  uniform: assignUniform,
  range: assignRange,
};

/** Names that settings may list. */
export const ASSIGNOR_NAMES = Object.keys(ASSIGNORS);

export function assignorOf(name: string): Assignor {
  return ASSIGNORS[name] ?? assignUniform;
}

// The server-side assignors of consumer groups (KIP-848), by name. An assignor is a pure function: who subscribes to
// what, and what each shall own by the last assignment → what each shall own now.
import { assignRange } from './assign-range.ts';
import { assignUniform } from './assign-uniform.ts';
import type { Assignor } from './assigned-member.ts';

const ASSIGNORS: Readonly<Record<string, Assignor>> = {
  uniform: assignUniform,
  range: assignRange,
};

/** Names that settings may list. */
export const ASSIGNOR_NAMES = Object.keys(ASSIGNORS);

export function assignorOf(name: string): Assignor {
  return ASSIGNORS[name] ?? assignUniform;
}

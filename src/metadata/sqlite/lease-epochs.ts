// Leases as writes assert them, within their own transaction. Not for: taking and giving them (leases.ts).
import { FloeError } from '../../base/error.ts';
import type { LeaseToken } from '../leases.ts';

export interface LeaseEpochs {
  /** The epoch of the latest holder; undefined when nobody has ever taken the lease in this store. */
  epochOf(name: string): number | undefined;
  /** Whether the lease is held under this epoch, now. */
  isLive(token: LeaseToken): boolean;
}

/**
 * To be called within the transaction that writes. A lease that nobody ever took is nobody else's: one node alone has
 * rights without asking (cluster/solo.ts). @throws FloeError `conflict` when the store knows a higher epoch.
 */
export function assertLeases(leases: LeaseEpochs, tokens: readonly LeaseToken[]): void {
  for (const { name, epoch } of tokens) {
    const now = leases.epochOf(name) ?? 0;
    if (now > epoch)
      throw new FloeError(
        'conflict',
        `lease ${name} is held by another with epoch ${now}, no longer with ${epoch}`,
      );
  }
}

// Keeps an answer within its reader's quota, as Fetch does: bytes are charged as they leave, and the next ones wait for
// as long as the quota says. Not for: whose quota it is (the composition root knows).
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';

/** The quota of one reader. */
export interface ReadQuota {
  /** Charges bytes that are about to leave. Milliseconds to wait before they may, 0 when they may at once. */
  charge(bytes: number): number;
}

export interface PaceOptions {
  readonly quota: ReadQuota;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Longest wait for one part: past it the answer ends. */
  readonly maxWaitMs: number;
}

/**
 * The parts of `answer`, each after its wait.
 * @throws FloeError `timeout` when a part would wait for longer than `maxWaitMs`.
 */
export async function* paced(
  answer: AsyncIterable<string | Uint8Array>,
  { quota, clock, signal, maxWaitMs }: PaceOptions,
): AsyncGenerator<string | Uint8Array> {
  for await (const part of answer) {
    const waitMs = quota.charge(typeof part === 'string' ? Buffer.byteLength(part) : part.length);
    if (waitMs > maxWaitMs) {
      throw new FloeError(
        'timeout',
        `the quota consumer_byte_rate would hold the answer back for ${waitMs} ms, longer than sql.timeout.ms (${maxWaitMs}): ask for less, or raise the quota`,
      );
    }
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    yield part;
  }
}

// Where flushes go: the local WAL through the sequencer, or an object of a store and then the sequencer.
import type { Clock } from '../../base/clock.ts';
import { isFloeError } from '../../base/error.ts';
import type { OpenFlush } from './open-flush.ts';
import type { FlushReply, FlushRequest, SequencerPort } from './sequencer-port.ts';

export interface Flushed {
  readonly reply: FlushReply;
  /** Pending while somebody may still read the slab to write it; until then its bytes must not change. */
  readonly settled?: Promise<void>;
}

export interface FlushTarget {
  /**
   * Makes a flush durable and commits it; flushes commit in the order of calls.
   * @throws FloeError: it is not committed and never will be.
   */
  flush(flush: OpenFlush, flushId: Uint8Array): Promise<Flushed>;
  stop(): Promise<void>;
}

/** The sequencer writes the bytes itself. */
export function localTarget(sequencer: SequencerPort, clock: Clock): FlushTarget {
  return {
    async flush(flush, flushId) {
      const slab = flush.slab.number;
      const request = { flushId, columns: flush.take(), slab, ...flush.takeRiders() };
      return { reply: await submitUntilKnown(sequencer, clock, request) };
    },
    async stop() {},
  };
}

/** First pause after a lost reply; doubles up to a second. */
const FIRST_PAUSE_MS = 10;

/** Asks again under the same flush id for as long as the outcome is unknown (L5, L8: the first outcome is returned). */
export async function submitUntilKnown(
  sequencer: SequencerPort,
  clock: Clock,
  request: FlushRequest,
): Promise<FlushReply> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, 1000)) {
    try {
      return await sequencer.submit(request);
    } catch (caught) {
      if (!isFloeError(caught, 'timeout')) throw caught;
      await clock.sleep(pauseMs);
      request = { ...request, again: true };
    }
  }
}

// What background work could not read for what it holds, left alone for a while that doubles with every failure in a row.
// Bytes come damaged also on their way only, so nothing is given up for ever; and what is damaged for good costs a
// try now and then and holds nobody up. In memory: a restart tries all of it again.
// Not for: a store that doesn't answer, which says nothing about one object.
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { ObjectRef } from './entries.ts';

const FIRST_MS = 60_000;
/** Long enough that reading it in vain costs next to nothing, short enough for somebody who has mended it. */
const LONGEST_MS = 30 * 60_000;

interface Failed {
  readonly waitMs: number;
  readonly untilMs: number;
}

export class SetAside {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #failed = new Map<number, Failed>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** What failed when it was last tried. */
  get size(): number {
    return this.#failed.size;
  }

  /** Whether it is not to be tried yet. */
  has(id: number): boolean {
    const failed = this.#failed.get(id);
    return failed !== undefined && this.#clock.monotonic() < failed.untilMs;
  }

  /** It failed. */
  add(id: number): void {
    const waitMs = Math.min(LONGEST_MS, (this.#failed.get(id)?.waitMs ?? FIRST_MS / 2) * 2);
    this.#failed.set(id, { waitMs, untilMs: this.#clock.monotonic() + waitMs });
  }

  /** It went well, or is gone. */
  delete(id: number): void {
    this.#failed.delete(id);
  }

  keys(): Iterable<number> {
    return this.#failed.keys();
  }
}

/** Reads one object: a failure because of what it holds says which object it was. */
export async function reading<T>(object: ObjectRef, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (caught) {
    if (!isDamage(caught)) throw caught;
    const { code, message } = caught;
    const { objectId, key } = object;
    throw new FloeError(code, message, { cause: caught, details: { objectId, key } });
  }
}

export const isDamage = (caught: unknown) => isFloeError(caught, 'corrupt', 'not-found');

/** The object that `reading` named. */
export function damagedObject({
  details,
}: FloeError): Pick<ObjectRef, 'objectId' | 'key'> | undefined {
  const { objectId, key } = details as { objectId?: unknown; key?: unknown };
  return typeof objectId === 'number' && typeof key === 'string' ? { objectId, key } : undefined;
}

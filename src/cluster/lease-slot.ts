// One wanted lease at this node: what the store granted and until when it surely holds, and the work that follows it.
// `gained` and `lost` are called in turns, each after the other has settled; the total table is in SPEC.md.
// Not for: asking the store (lease-keeper.ts).
import { assert } from '../base/assert.ts';
import type { LeaseToken } from '../metadata/leases.ts';
import type { WantedLease } from './cluster.ts';

/** Where the work of a lease is: not begun, beginning, under way, ending. */
export type Phase = 'idle' | 'gaining' | 'working' | 'losing';

/** Why a lease ends here: `given-up` ones are released in the store, so that others needn't wait. */
export type Ending = 'lapsed' | 'taken' | 'given-up';

interface Grant {
  readonly token: LeaseToken;
  deadlineMs: number;
}

export interface SlotHooks {
  /** The slot is idle again; with `given-up` the store may give the lease to others now. */
  ended(slot: LeaseSlot, why: Ending): void;
  /** `gained` or `lost` threw. */
  failed(slot: LeaseSlot, caught: unknown): void;
}

export class LeaseSlot {
  readonly lease: WantedLease;
  readonly #hooks: SlotHooks;
  #phase: Phase = 'idle';
  #grant: Grant | undefined;
  #ending: Ending | undefined;
  #waiting: (() => void)[] = [];
  /** After a fault, when it may be asked for again. */
  restUntilMs = -Infinity;

  constructor(lease: WantedLease, hooks: SlotHooks) {
    this.lease = lease;
    this.#hooks = hooks;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** The right, while it surely holds at `nowMs` and nothing has ended it. */
  held(nowMs: number): LeaseToken | undefined {
    const grant = this.#grant;
    return grant !== undefined && nowMs < grant.deadlineMs ? grant.token : undefined;
  }

  /** When what was granted ends; undefined without it. */
  get deadlineMs(): number | undefined {
    return this.#grant?.deadlineMs;
  }

  /** May the store be asked for it? Not while work of an ended right is still under way. */
  get askable(): boolean {
    return this.#phase === 'idle' || this.#grant !== undefined;
  }

  /** The store says that this node holds it until `deadlineMs`. */
  granted(token: LeaseToken, deadlineMs: number): void {
    if (this.#phase === 'idle') {
      this.#grant = { token, deadlineMs };
      void this.#begin(token);
      return;
    }
    // What has ended stays ended: the next question, after the work has stopped, begins anew.
    if (this.#grant === undefined) return;
    if (this.#grant.token.epoch === token.epoch)
      this.#grant.deadlineMs = Math.max(this.#grant.deadlineMs, deadlineMs);
    else this.end('taken');
  }

  /** The right is over from this moment on. */
  end(why: Ending): void {
    if (this.#grant === undefined) return;
    this.#grant = undefined;
    this.#ending = why;
    if (this.#phase === 'working') void this.#finish();
    else assert(this.#phase === 'gaining', 'C2: a right has work that begins or is under way');
  }

  /** Resolves when no work is under way. */
  async quiet(): Promise<void> {
    if (this.#phase !== 'idle') await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async #begin(token: LeaseToken): Promise<void> {
    this.#phase = 'gaining';
    try {
      await this.lease.gained(token);
    } catch (caught) {
      this.#hooks.failed(this, caught);
      this.end('given-up');
    }
    this.#phase = 'working';
    if (this.#grant === undefined) await this.#finish();
  }

  async #finish(): Promise<void> {
    this.#phase = 'losing';
    try {
      await this.lease.lost();
    } catch (caught) {
      this.#hooks.failed(this, caught);
    }
    this.#phase = 'idle';
    const why = this.#ending;
    assert(why !== undefined, 'C2: work ends for a reason');
    this.#ending = undefined;
    this.#hooks.ended(this, why);
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

// Who may be on the wire: so many requests at once in all, of each background purpose at most its share, and of its bytes
// so many a second. Together the background leaves a reserve free, so a produce or a read at the tail never waits for it.
// Among those that wait the more urgent purpose goes first, then the older request.
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { isBackground, type Purpose, purposes } from './purposes.ts';

export interface PurposeLimit {
  /** Share of all slots that it may have at once, in (0, 1]. */
  readonly share: number;
  /** 0: as many as there are. */
  readonly bytesPerSecond: number;
}

export interface SlotLimits {
  readonly slots: number;
  /** By purpose; those left out have no limit of their own. */
  readonly of: Partial<Readonly<Record<Purpose, PurposeLimit>>>;
}

/** Of all slots, what background purposes together leave free. */
const RESERVE_SHARE = 0.25;

interface Waiting {
  readonly slots: number;
  readonly go: () => void;
}

/** A purpose's own account. */
interface Account {
  readonly purpose: Purpose;
  readonly maxSlots: number;
  readonly bytesPerSecond: number;
  readonly waiting: Waiting[];
  used: number;
  /** When the bytes granted so far are paid off. */
  paidMs: number;
}

export class RequestSlots {
  readonly #clock: Clock;
  readonly #slots: number;
  readonly #backgroundSlots: number;
  readonly #accounts: ReadonlyMap<Purpose, Account>;
  #used = 0;
  #backgroundUsed = 0;

  constructor(clock: Clock, { slots, of }: SlotLimits) {
    assert(slots >= 1, 'there is at least one slot');
    this.#clock = clock;
    this.#slots = slots;
    this.#backgroundSlots = Math.max(1, Math.floor(slots * (1 - RESERVE_SHARE)));
    const account = (purpose: Purpose): Account => {
      const { share = 1, bytesPerSecond = 0 } = of[purpose] ?? {};
      const maxSlots = Math.max(1, Math.floor(slots * share));
      return { purpose, maxSlots, bytesPerSecond, waiting: [], used: 0, paidMs: 0 };
    };
    this.#accounts = new Map(purposes.map((purpose) => [purpose, account(purpose)]));
  }

  /** Requests of a purpose that are under way, counted by their slots. */
  used(purpose: Purpose): number {
    return this.#account(purpose).used;
  }

  /** Requests of a purpose that wait for a slot. */
  waiting(purpose: Purpose): number {
    return this.#account(purpose).waiting.length;
  }

  /** Runs `work` in `slots` slots once there is room; `bytes` are charged to the purpose's rate. */
  async run<T>(
    purpose: Purpose,
    want: { readonly slots?: number; readonly bytes: number; readonly signal?: AbortSignal },
    work: () => Promise<T>,
  ): Promise<T> {
    const account = this.#account(purpose);
    const slots = Math.min(want.slots ?? 1, account.maxSlots, this.#slots);
    await this.#byRate(account, want.bytes, want.signal);
    await this.#enter(account, slots, want.signal);
    try {
      return await work();
    } finally {
      this.#leave(account, slots);
    }
  }

  async #byRate(account: Account, bytes: number, signal: AbortSignal | undefined): Promise<void> {
    if (account.bytesPerSecond === 0 || bytes === 0) return;
    const nowMs = this.#clock.monotonic();
    const fromMs = Math.max(nowMs, account.paidMs);
    account.paidMs = fromMs + (bytes / account.bytesPerSecond) * 1_000;
    if (fromMs > nowMs) await this.#clock.sleep(fromMs - nowMs, signal);
  }

  #enter(account: Account, slots: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (account.waiting.length === 0 && this.#fits(account, slots)) {
      this.#take(account, slots);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        slots,
        go: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      const onAbort = () => {
        account.waiting.splice(account.waiting.indexOf(waiting), 1);
        this.#next();
        reject(signal?.reason);
      };
      account.waiting.push(waiting);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  #fits({ purpose, used, maxSlots }: Account, slots: number): boolean {
    if (used > 0 && used + slots > maxSlots) return false;
    if (this.#used > 0 && this.#used + slots > this.#slots) return false;
    const background = isBackground(purpose);
    return !background || used === 0 || this.#backgroundUsed + slots <= this.#backgroundSlots;
  }

  #take(account: Account, slots: number): void {
    account.used += slots;
    this.#used += slots;
    if (isBackground(account.purpose)) this.#backgroundUsed += slots;
  }

  #leave(account: Account, slots: number): void {
    account.used -= slots;
    this.#used -= slots;
    if (isBackground(account.purpose)) this.#backgroundUsed -= slots;
    this.#next();
  }

  #next(): void {
    for (const account of this.#accounts.values())
      for (let first = account.waiting[0]; first !== undefined; first = account.waiting[0]) {
        if (!this.#fits(account, first.slots)) break;
        account.waiting.shift();
        this.#take(account, first.slots);
        first.go();
      }
  }

  #account(purpose: Purpose): Account {
    return this.#accounts.get(purpose)!;
  }
}

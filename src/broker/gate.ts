// Limits over all connections: requests being worked on, and bytes of requests received but not yet worked on.
// A connection that meets a limit stops reading and is called back when there is room, in order of arrival.
// Produce is counted apart: however many of them wait for a slow store, heartbeats and fetches go on.
// Small requests need no bytes from here: they are the reserve by which groups go on while producers wait.
// Of the bytes every connection and user has a share (shares.ts), so that requests of one, half there or not worked on,
// leave room for those of others. Past it one large request at a time still goes on, or requests that are all half there
// would wait for one another for ever.
import { type Share, Shares } from './shares.ts';

export interface GateLimits {
  /** Of Produce, and of all others. */
  readonly maxRequests: number;
  readonly maxBytes: number;
  /** See SharesOptions. Default: no shares but what is free. */
  readonly factor?: () => number;
}

/** Lets so many requests be worked on at a time. */
export class Turnstile {
  readonly #max: number;
  readonly #waiting = new Set<() => void>();
  #inside = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get inside(): number {
    return this.#inside;
  }

  /** True when another request may be worked on. */
  get open(): boolean {
    return this.#inside < this.#max;
  }

  enter(): void {
    this.#inside += 1;
  }

  leave(): void {
    this.#inside -= 1;
    wake(this.#waiting, () => this.open);
  }

  /** Calls `action` once when another request may be worked on; the same action waits once. */
  whenOpen(action: () => void): void {
    this.#waiting.add(action);
  }

  forget(action: () => void): void {
    this.#waiting.delete(action);
  }
}

export class Gate {
  readonly produce: Turnstile;
  readonly others: Turnstile;
  readonly #limits: GateLimits;
  readonly #waitRoom = new Set<() => void>();
  readonly #shares: Shares;
  #bytes = 0;
  /** Whose request goes on past the limit. */
  #favoured: Share | undefined;

  constructor(limits: GateLimits) {
    this.produce = new Turnstile(limits.maxRequests);
    this.others = new Turnstile(limits.maxRequests);
    this.#limits = limits;
    this.#shares = new Shares({
      // At the limit itself the next one still goes on.
      free: () => limits.maxBytes - this.#bytes + 1,
      factor: limits.factor ?? (() => Number.POSITIVE_INFINITY),
    });
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What a connection of the user holds of the bytes, until {@link close}. */
  share(user: string): Share {
    return this.#shares.open(user);
  }

  close(share: Share): void {
    this.#shares.close(share);
  }

  /** Accounts for bytes that arrived or are about to. */
  take(bytes: number, share: Share): void {
    this.#bytes += bytes;
    this.#shares.take(share, bytes);
  }

  /** Whether the connection may receive more of a large request; if not, it waits by `whenRoom`. */
  admits(share: Share): boolean {
    if (this.#shares.admits(share)) return true;
    this.#favoured ??= share;
    return this.#favoured === share;
  }

  /** The bytes were worked on, or their connection is gone; `whole`: a large request has been received, or never will be. */
  release(bytes: number, share: Share, whole = false): void {
    this.#bytes -= bytes;
    this.#shares.give(share, bytes);
    if (whole && share === this.#favoured) this.#favoured = undefined;
    const room = () => this.#bytes <= this.#limits.maxBytes || this.#favoured === undefined;
    wake(this.#waitRoom, room);
  }

  /** Calls `action` once when more of a large request may be received. */
  whenRoom(action: () => void): void {
    this.#waitRoom.add(action);
  }

  forget(action: () => void): void {
    this.produce.forget(action);
    this.others.forget(action);
    this.#waitRoom.delete(action);
  }
}

/** In order, while there is room: one that has nothing to do leaves it to the next. */
function wake(waiting: Set<() => void>, room: () => boolean): void {
  if (waiting.size === 0) return;
  for (const action of [...waiting]) {
    if (!room()) return;
    waiting.delete(action);
    action();
  }
}

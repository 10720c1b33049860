// Limits over all connections: requests being worked on, and bytes of requests received but not yet worked on.
// A connection that meets a limit stops reading and is called back when there is room, in order of arrival.
// Small requests need no bytes from here: they are the reserve by which groups go on while producers wait.
// Past the limit of bytes one large request at a time still goes on, or requests that are all half there would
// wait for one another for ever.

export interface GateLimits {
  readonly maxRequests: number;
  readonly maxBytes: number;
}

export class Gate {
  readonly #limits: GateLimits;
  readonly #waitOpen = new Set<() => void>();
  readonly #waitRoom = new Set<() => void>();
  #requests = 0;
  #bytes = 0;
  /** Whose request goes on past the limit. */
  #favoured: object | undefined;

  constructor(limits: GateLimits) {
    this.#limits = limits;
  }

  get requests(): number {
    return this.#requests;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** True when another request may be worked on. */
  get open(): boolean {
    return this.#requests < this.#limits.maxRequests;
  }

  enter(): void {
    this.#requests += 1;
  }

  leave(): void {
    this.#requests -= 1;
    this.#wake(this.#waitOpen, () => this.open);
  }

  /** Accounts for bytes that arrived or are about to. */
  take(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Whether `owner` may receive more of a large request; if not, it waits by `whenRoom`. */
  admits(owner: object): boolean {
    if (this.#bytes <= this.#limits.maxBytes) return true;
    this.#favoured ??= owner;
    return this.#favoured === owner;
  }

  /** The bytes were worked on, or their connection is gone. */
  release(bytes: number, owner?: object): void {
    this.#bytes -= bytes;
    if (owner !== undefined && owner === this.#favoured) this.#favoured = undefined;
    const room = () => this.#bytes <= this.#limits.maxBytes || this.#favoured === undefined;
    this.#wake(this.#waitRoom, room);
  }

  /** Calls `action` once when another request may be worked on; the same action waits once. */
  whenOpen(action: () => void): void {
    this.#waitOpen.add(action);
  }

  /** Calls `action` once when more of a large request may be received. */
  whenRoom(action: () => void): void {
    this.#waitRoom.add(action);
  }

  forget(action: () => void): void {
    this.#waitOpen.delete(action);
    this.#waitRoom.delete(action);
  }

  /** In order, while there is room: one that has nothing to do leaves it to the next. */
  #wake(waiting: Set<() => void>, room: () => boolean): void {
    if (waiting.size === 0) return;
    for (const action of [...waiting]) {
      if (!room()) return;
      waiting.delete(action);
      action();
    }
  }
}

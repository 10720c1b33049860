// Limits over all connections: requests being worked on, and bytes of requests received but not yet worked on.
// A connection that meets a limit stops reading and is called back when there is room, in order of arrival.
// Small requests need no bytes from here: they are the reserve by which groups go on while producers wait.

export interface GateLimits {
  readonly maxRequests: number;
  readonly maxBytes: number;
}

export class Gate {
  readonly #limits: GateLimits;
  readonly #waiting = new Set<() => void>();
  #requests = 0;
  #bytes = 0;

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
    this.#wake();
  }

  /** Accounts for `bytes`; false when that is past the limit, and the caller is to stop reading until room. */
  take(bytes: number): boolean {
    this.#bytes += bytes;
    return this.hasRoom;
  }

  get hasRoom(): boolean {
    return this.#bytes <= this.#limits.maxBytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
    this.#wake();
  }

  /** Calls `action` once there may be room again; the same action waits once. */
  whenRoom(action: () => void): void {
    this.#waiting.add(action);
  }

  forget(action: () => void): void {
    this.#waiting.delete(action);
  }

  /** Calls back whoever waits, in order, while there is room: one that has nothing to do leaves it to the next. */
  #wake(): void {
    for (const action of [...this.#waiting]) {
      if (!this.open || !this.hasRoom) return;
      this.#waiting.delete(action);
      action();
    }
  }
}

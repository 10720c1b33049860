// Bytes of replies that wait as copies for slow readers, over all connections of a broker: bounded.

/** Slow readers' replies that are copied at most; further ones stay where they are, of which the log has its own bound. */
const MAX_COPY_BYTES = 64 * 1024 * 1024;

export class CopyBudget {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes = MAX_COPY_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of copies now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** False when there is no room for so many more. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#maxBytes) return false;
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}

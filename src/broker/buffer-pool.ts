// Buffers for large frames, used again and again: a fresh megabyte costs more in page faults than in copying.
// Not for: small frames, which live in the landing buffer or in copies of their own.

/** Buffers smaller than this are made to measure and not kept. */
const SMALLEST_KEPT = 64 * 1024;

/** Buffers larger than this are not kept: they are rare, and keeping them would pin memory. */
const LARGEST_KEPT = 2 * 1024 * 1024;

/** Bytes kept for reuse at most. */
const KEEP_BYTES = 16 * 1024 * 1024;

export class BufferPool {
  /** Free buffers by the power of two of their size. */
  readonly #free: Buffer[][] = [];
  #keptBytes = 0;

  /** A buffer of at least `bytes`, with undefined content. */
  take(bytes: number): Buffer {
    if (bytes < SMALLEST_KEPT) return Buffer.allocUnsafeSlow(bytes);
    const order = orderOf(bytes);
    const kept = this.#free[order]?.pop();
    if (kept !== undefined) {
      this.#keptBytes -= kept.length;
      return kept;
    }
    // Slow: never a slice of Node's shared pool, so that a kept buffer pins nothing else.
    return Buffer.allocUnsafeSlow(2 ** order);
  }

  /** Gives a buffer back that nobody uses any more. */
  give(buffer: Buffer): void {
    if (buffer.length < SMALLEST_KEPT || buffer.length > LARGEST_KEPT) return;
    if (this.#keptBytes + buffer.length > KEEP_BYTES) return;
    (this.#free[orderOf(buffer.length)] ??= []).push(buffer);
    this.#keptBytes += buffer.length;
  }
}

function orderOf(bytes: number): number {
  return 32 - Math.clz32(bytes - 1);
}

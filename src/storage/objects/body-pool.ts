// Memory for bodies that are put together before they are sent. A fresh buffer of some MiB for each flush costs more time
// than sending it: pages to be touched, and a collector that hurries because of them. A buffer is used again when its request
// has ended; what a connection that is being torn down might still send of it, no store takes for the old body: the checksum
// went ahead. Not for: bodies in one piece, nor parts that s3.ts sends as they are, which aren't copied at all.

/** Below it a fresh buffer is as good. */
const MIN_POOLED_BYTES = 256 * 1024;
/** Bodies of flushes; larger ones go in parts. */
const MAX_POOLED_BYTES = 16 * 1024 * 1024;
/** Kept for the next bodies. */
const MAX_KEPT_BYTES = 48 * 1024 * 1024;

export interface PooledBody {
  readonly bytes: Buffer;
  /** Nobody reads the bytes any more; call once. */
  release(): void;
}

const nothing = () => {};

export class BodyPool {
  /** Free buffers by size, which is a power of two. */
  readonly #free = new Map<number, Buffer[]>();
  #keptBytes = 0;

  /** Bytes of buffers that wait for a body. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** Parts as one body; a single part isn't copied, shared memory included. */
  join(parts: readonly Uint8Array[]): PooledBody {
    const [first] = parts;
    if (parts.length === 1 && first !== undefined) {
      const bytes = Buffer.from(first.buffer, first.byteOffset, first.length);
      return { bytes, release: nothing };
    }
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    if (size < MIN_POOLED_BYTES || size > MAX_POOLED_BYTES)
      return { bytes: Buffer.concat(parts), release: nothing };
    const whole = this.#take(2 ** Math.ceil(Math.log2(size)));
    let at = 0;
    for (const part of parts) {
      // Not `set`: from shared memory it copies byte by byte unless both ends are aligned alike.
      Buffer.from(part.buffer, part.byteOffset, part.length).copy(whole, at);
      at += part.length;
    }
    return { bytes: whole.subarray(0, size), release: () => this.#give(whole) };
  }

  #take(size: number): Buffer {
    const found = this.#free.get(size)?.pop();
    if (found === undefined) return Buffer.allocUnsafeSlow(size);
    this.#keptBytes -= size;
    return found;
  }

  #give(buffer: Buffer): void {
    if (this.#keptBytes + buffer.length > MAX_KEPT_BYTES) return;
    this.#keptBytes += buffer.length;
    const free = this.#free.get(buffer.length);
    if (free === undefined) this.#free.set(buffer.length, [buffer]);
    else free.push(buffer);
  }
}

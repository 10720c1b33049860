// Cuts a socket's chunks into frames (size i32, then as many bytes). A frame inside one chunk is a view of it;
// one that spans chunks is gathered into a buffer of its own, each byte copied once.
// Not for: when to stop reading (the connection's business, which sees `pendingBytes`).
import { FloeError } from '../base/error.ts';
import { protocolSettings } from './settings.ts';

/** Up to this size a frame's buffer is made at once; a larger one grows with what really arrives. */
const EAGER_BYTES = 1_048_576;
const SIZE_BYTES = 4;

export class FrameDecoder {
  readonly #maxBytes: number;
  #sizeBytes = 0;
  #size = 0;
  /** Of the frame under way; undefined between frames. */
  #buffer: Buffer | undefined;
  #length = 0;

  constructor(maxBytes: number = protocolSettings['socket.request.max.bytes'].default) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of a frame that has begun and isn't whole. */
  get pendingBytes(): number {
    return this.#sizeBytes + this.#length;
  }

  /** Announced size of the frame under way; 0 between frames. */
  get announcedBytes(): number {
    return this.#sizeBytes === SIZE_BYTES ? this.#size : 0;
  }

  /**
   * The frames that `chunk` completes, without their sizes. `chunk` must not be written to afterwards.
   * @throws FloeError `invalid` for a negative size, `exhausted` beyond the limit: the stream is lost, close it.
   */
  push(chunk: Buffer): Buffer[] {
    const frames: Buffer[] = [];
    let at = 0;
    while (at < chunk.length) {
      at = this.#readSize(chunk, at);
      if (this.#sizeBytes < SIZE_BYTES) break;
      const missing = this.#size - this.#length;
      // Nothing of the body yet: the next chunk may hold all of it, so no buffer is made.
      if (missing > 0 && at === chunk.length) break;
      if (this.#length === 0 && chunk.length - at >= missing) {
        frames.push(chunk.subarray(at, at + missing));
        at += missing;
        this.#reset();
      } else {
        at = this.#gather(chunk, at);
        if (this.#length === this.#size) frames.push(this.#take());
      }
    }
    return frames;
  }

  #readSize(chunk: Buffer, at: number): number {
    while (this.#sizeBytes < SIZE_BYTES && at < chunk.length) {
      this.#size = (this.#size << 8) | chunk[at++]!;
      this.#sizeBytes += 1;
      if (this.#sizeBytes === SIZE_BYTES) this.#checkSize();
    }
    return at;
  }

  #checkSize(): void {
    if (this.#size < 0) {
      throw new FloeError('invalid', `frame of negative size ${this.#size}`);
    }
    if (this.#size > this.#maxBytes) {
      throw new FloeError(
        'exhausted',
        `frame of ${this.#size} bytes, the limit is ${this.#maxBytes} (socket.request.max.bytes)`,
        { details: { size: this.#size, limit: this.#maxBytes } },
      );
    }
  }

  #gather(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#size - this.#length);
    const wanted = this.#length + end - at;
    const buffer = this.#bufferOf(wanted);
    chunk.copy(buffer, this.#length, at, end);
    this.#length = wanted;
    return end;
  }

  #bufferOf(bytes: number): Buffer {
    const old = this.#buffer;
    if (old !== undefined && old.length >= bytes) return old;
    const eager = Math.max(EAGER_BYTES, bytes * 2);
    const buffer = Buffer.allocUnsafeSlow(Math.min(this.#size, eager));
    if (old !== undefined) old.copy(buffer, 0, 0, this.#length);
    this.#buffer = buffer;
    return buffer;
  }

  #take(): Buffer {
    const frame = this.#buffer!;
    this.#reset();
    return frame;
  }

  #reset(): void {
    this.#sizeBytes = 0;
    this.#size = 0;
    this.#buffer = undefined;
    this.#length = 0;
  }
}

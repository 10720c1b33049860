// Bytes of one connection → frames, with as few copies as there can be. Sans I/O.
// The socket reads into `target()`: a landing buffer that all connections share, or, while a frame is half there,
// that frame's own buffer. A frame that arrived whole is handed on where it landed; its bytes are valid only until
// `onFrame` returns. Memory follows bytes that arrived, never what a length field claims.
import { assert } from '../base/assert.ts';
import { FloeError } from '../base/error.ts';
import type { BufferPool } from './buffer-pool.ts';
import type { Gate } from './gate.ts';
import type { Share } from './shares.ts';

/** Length field of a frame. */
const SIZE_BYTES = 4;

/** Frames up to this need no room at the gate (gate.ts says why). */
export const SMALL_FRAME_BYTES = 64 * 1024;

/** First buffer of a small frame and of a large one; it doubles as bytes arrive. */
const FIRST_SMALL_BYTES = 4 * 1024;
const FIRST_LARGE_BYTES = 1024 * 1024;

/** Large enough for a burst of small requests in one system call, small enough for the processor's cache. */
export const LANDING_BYTES = 128 * 1024;

export interface FrameReceiverOptions {
  /** Shared by all connections: filled and emptied within one callback. */
  readonly landing: Buffer;
  readonly pool: BufferPool;
  readonly gate: Gate;
  /** What the connection has of the gate's bytes. */
  readonly share: Share;
  readonly maxFrameBytes: number;
  /** A whole frame without its length field. Its bytes are valid until this returns. */
  onFrame(frame: Buffer): void;
  /** The gate is full: stop reading until it has room. */
  onNoRoom(): void;
}

export class FrameReceiver {
  readonly #options: FrameReceiverOptions;
  /** Bytes of a length field cut in two. */
  readonly #size = Buffer.allocUnsafe(SIZE_BYTES);
  #sizeFilled = 0;
  /** The frame under way. */
  #frame: Buffer | undefined;
  #frameBytes = 0;
  #filled = 0;
  #reserved = 0;
  /** Where the reserved bytes were taken from. */
  #share: Share | undefined;
  #view: Buffer | undefined;

  constructor(options: FrameReceiverOptions) {
    this.#options = options;
  }

  /** True while a frame has begun and not ended. */
  get partial(): boolean {
    return this.#sizeFilled > 0 || this.#frame !== undefined;
  }

  /** True while a large frame has begun and the gate has no room for more of it. */
  get starved(): boolean {
    return this.#share !== undefined && !this.#options.gate.admits(this.#share);
  }

  /** Where the next bytes should be read into. */
  target(): Buffer {
    const frame = this.#frame;
    if (frame === undefined) return this.#options.landing;
    if (this.#view === undefined) {
      const end = Math.min(frame.length, this.#frameBytes);
      this.#view = frame.subarray(this.#filled, end);
    }
    return this.#view;
  }

  /**
   * `length` bytes arrived in `buffer`, which may be what `target` returned or any other.
   * @throws FloeError `invalid` for a length that no frame has.
   */
  received(buffer: Buffer, length: number): void {
    if (buffer === this.#view) {
      this.#view = undefined;
      this.#filled += length;
      this.#advance();
      return;
    }
    this.#view = undefined;
    let at = 0;
    while (at < length) at = this.#consume(buffer, at, length);
  }

  /** Frees what is held; nothing may be received afterwards. */
  close(): void {
    this.#dropFrame();
  }

  /** Takes what it can from `buffer[at…end)`; returns how far it got. */
  #consume(buffer: Buffer, at: number, end: number): number {
    const frame = this.#frame;
    if (frame !== undefined) {
      const take = Math.min(end - at, Math.min(frame.length, this.#frameBytes) - this.#filled);
      buffer.copy(frame, this.#filled, at, at + take);
      this.#filled += take;
      this.#advance();
      return at + take;
    }
    if (this.#sizeFilled > 0 || end - at < SIZE_BYTES) return this.#consumeSize(buffer, at, end);
    const bytes = buffer.readInt32BE(at);
    this.#checkSize(bytes);
    const start = at + SIZE_BYTES;
    if (start + bytes <= end) {
      this.#options.onFrame(buffer.subarray(start, start + bytes));
      return start + bytes;
    }
    this.#begin(bytes);
    return start;
  }

  #consumeSize(buffer: Buffer, at: number, end: number): number {
    const take = Math.min(end - at, SIZE_BYTES - this.#sizeFilled);
    buffer.copy(this.#size, this.#sizeFilled, at, at + take);
    this.#sizeFilled += take;
    if (this.#sizeFilled === SIZE_BYTES) {
      this.#sizeFilled = 0;
      const bytes = this.#size.readInt32BE(0);
      this.#checkSize(bytes);
      this.#begin(bytes);
    }
    return at + take;
  }

  #checkSize(bytes: number): void {
    const { maxFrameBytes } = this.#options;
    if (bytes > 0 && bytes <= maxFrameBytes) return;
    throw new FloeError(
      'invalid',
      `a request of ${bytes} bytes (limit ${maxFrameBytes}, see socket.request.max.bytes)`,
    );
  }

  #begin(bytes: number): void {
    this.#frameBytes = bytes;
    this.#filled = 0;
    const small = bytes <= SMALL_FRAME_BYTES;
    this.#grow(Math.min(bytes, small ? FIRST_SMALL_BYTES : FIRST_LARGE_BYTES));
  }

  /** After bytes were added: hand the frame on, or make room for more of it. */
  #advance(): void {
    const frame = this.#frame;
    assert(frame !== undefined, 'bytes were added to a frame');
    if (this.#filled === this.#frameBytes) {
      this.#options.onFrame(frame.subarray(0, this.#frameBytes));
      this.#dropFrame();
    } else if (this.#filled === frame.length) {
      this.#grow(Math.min(this.#frameBytes, frame.length * 2));
    }
  }

  /** Gives the frame a buffer of `bytes`. Past the limit of the gate it still gets it, but reading pauses. */
  #grow(bytes: number): void {
    const { pool, gate, onNoRoom } = this.#options;
    const old = this.#frame;
    const next = pool.take(bytes);
    if (old !== undefined) {
      old.copy(next, 0, 0, this.#filled);
      pool.give(old);
    }
    this.#frame = next;
    if (this.#frameBytes <= SMALL_FRAME_BYTES) return;
    const more = Math.min(bytes, this.#frameBytes) - this.#reserved;
    this.#reserved += more;
    this.#share ??= this.#options.share;
    gate.take(more, this.#share);
    if (this.starved) onNoRoom();
  }

  #dropFrame(): void {
    if (this.#frame === undefined) return;
    this.#options.pool.give(this.#frame);
    this.#frame = undefined;
    const reserved = this.#reserved;
    const share = this.#share;
    this.#reserved = 0;
    this.#share = undefined;
    if (share !== undefined) this.#options.gate.release(reserved, share, true);
  }
}

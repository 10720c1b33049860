// Replies of one connection on their way out: in order, a bounded piece at a time, so that progress of a slow
// reader is seen and the bytes a reply pins are freed as soon as the kernel has them. Sans I/O.
import type { Wire } from './wire.ts';

/** Most bytes handed to the socket in one write: large enough for throughput, small enough to see progress. */
const WRITE_BYTES = 1024 * 1024;

/** Most pieces in one vectored write (IOV_MAX is 1024 on Linux). */
const WRITE_PIECES = 512;

export interface OutboundReply {
  readonly pieces: readonly Uint8Array[];
  readonly bytes: number;
  /** The last byte is out, or never will be. Called once. */
  done(): void;
}

export class Outbox {
  readonly #wire: Wire;
  readonly #onProgress: (bytes: number) => void;
  readonly #queue: OutboundReply[] = [];
  /** Where the next write begins: piece of the first reply, and bytes of that piece already out. */
  #piece = 0;
  #offset = 0;
  #writing = false;
  #closed = false;

  constructor(wire: Wire, onProgress: (bytes: number) => void) {
    this.#wire = wire;
    this.#onProgress = onProgress;
  }

  get empty(): boolean {
    return this.#queue.length === 0 && !this.#writing;
  }

  push(reply: OutboundReply): void {
    if (this.#closed) {
      reply.done();
      return;
    }
    this.#queue.push(reply);
    if (!this.#writing) this.#write();
  }

  /** The wire is gone: whatever is queued is done with, except what the last write still holds. */
  close(): void {
    this.#closed = true;
    if (!this.#writing) this.#abandon();
  }

  #write(): void {
    const pieces: Uint8Array[] = [];
    const finished: OutboundReply[] = [];
    let bytes = 0;
    while (this.#queue.length > 0 && bytes < WRITE_BYTES && pieces.length < WRITE_PIECES) {
      const reply = this.#queue[0]!;
      if (this.#piece === reply.pieces.length) {
        finished.push(reply);
        this.#queue.shift();
        this.#piece = 0;
        continue;
      }
      const piece = this.#nextPiece(reply, WRITE_BYTES - bytes);
      pieces.push(piece);
      bytes += piece.length;
    }
    // A reply whose last piece is in this write is finished by it.
    const head = this.#queue[0];
    if (head !== undefined && this.#piece === head.pieces.length) {
      finished.push(head);
      this.#queue.shift();
      this.#piece = 0;
    }
    if (pieces.length === 0) return;
    this.#writing = true;
    this.#wire.write(pieces, () => this.#written(bytes, finished));
  }

  /** The next piece of `reply`, cut to `limit` bytes. */
  #nextPiece(reply: OutboundReply, limit: number): Uint8Array {
    const piece = reply.pieces[this.#piece]!;
    const rest = piece.length - this.#offset;
    if (rest > limit) {
      this.#offset += limit;
      return piece.subarray(this.#offset - limit, this.#offset);
    }
    const cut = this.#offset === 0 ? piece : piece.subarray(this.#offset);
    this.#piece += 1;
    this.#offset = 0;
    return cut;
  }

  #written(bytes: number, finished: readonly OutboundReply[]): void {
    this.#writing = false;
    for (const reply of finished) reply.done();
    if (this.#closed) this.#abandon();
    else {
      if (this.#queue.length > 0) this.#write();
      this.#onProgress(bytes);
    }
  }

  #abandon(): void {
    for (const reply of this.#queue.splice(0)) reply.done();
  }
}

// Replies of one connection on their way out: in order, a bounded piece at a time, so that progress of a slow
// reader is seen and the bytes a reply pins are freed as soon as the kernel has them. A peer that is found slow gets
// copies, until it has caught up, so that it pins nothing but what a write under way points into. Sans I/O.
import { CopyBudget } from './copy-budget.ts';
import type { Wire } from './wire.ts';

/** Most bytes handed to the socket in one write: large enough for throughput, small enough to see progress. */
const WRITE_BYTES = 1024 * 1024;

/** Most pieces in one vectored write (IOV_MAX is 1024 on Linux). */
const WRITE_PIECES = 512;

export interface OutboundReply {
  readonly pieces: readonly Uint8Array[];
  readonly bytes: number;
  /** Its bytes have been copied: what the pieces pin may go. Called at most once, before `done`. */
  unpin?(): void;
  /** The last byte is out, or never will be. Called once. */
  done(): void;
}

/** A reply as it waits here. */
interface Queued {
  readonly reply: OutboundReply;
  pieces: readonly Uint8Array[];
  /** Bytes taken from the budget; above 0 once its bytes are copies. */
  copied: number;
}

const SENT = new Uint8Array(0);

export interface OutboxEvents {
  /** The kernel has taken so many bytes. */
  onProgress(bytes: number): void;
  /** A write failed: nothing will be sent any more. */
  onGone(): void;
}

export class Outbox {
  readonly #wire: Wire;
  readonly #copies: CopyBudget;
  readonly #events: OutboxEvents;
  readonly #queue: Queued[] = [];
  /** Where the next write begins: piece of the first reply, and bytes of that piece already out. */
  #piece = 0;
  #offset = 0;
  #writing = false;
  #closed = false;
  /** The peer reads slowly: replies are copied as they come, until all are out. */
  #slow = false;
  /** The write under way points into the first reply, whose rest has been copied. */
  #unpinHead = false;

  constructor(wire: Wire, events: OutboxEvents, copies = new CopyBudget()) {
    this.#wire = wire;
    this.#copies = copies;
    this.#events = events;
  }

  get empty(): boolean {
    return this.#queue.length === 0 && !this.#writing;
  }

  push(reply: OutboundReply): void {
    if (this.#closed) {
      reply.done();
      return;
    }
    const queued = { reply, pieces: reply.pieces, copied: 0 };
    this.#queue.push(queued);
    if (this.#slow && this.#copy(queued, 0)) reply.unpin?.();
    if (!this.#writing) this.#write();
  }

  /** The peer has been slow for long: what waits is copied, as far as the budget reaches, and pins nothing any more. */
  copyWaiting(): void {
    this.#slow = true;
    for (const [n, queued] of this.#queue.entries()) {
      if (queued.copied > 0 || !this.#copy(queued, n === 0 ? this.#piece : 0)) continue;
      const underWay = n === 0 && this.#writing && (this.#piece > 0 || this.#offset > 0);
      if (underWay) this.#unpinHead = true;
      else queued.reply.unpin?.();
    }
  }

  /** Copies the pieces from `first` on; those before are out, or in the write under way. */
  #copy(queued: Queued, first: number): boolean {
    const bytes = queued.pieces.reduce((sum, piece, n) => sum + (n < first ? 0 : piece.length), 0);
    if (bytes === 0 || !this.#copies.take(bytes)) return false;
    queued.pieces = queued.pieces.map((piece, n) => (n < first ? SENT : Buffer.from(piece)));
    queued.copied = bytes;
    return true;
  }

  #done({ reply, copied }: Queued): void {
    this.#copies.give(copied);
    reply.done();
  }

  /** The wire is gone: whatever is queued is done with, except what the last write still holds. */
  close(): void {
    this.#closed = true;
    if (!this.#writing) this.#abandon();
  }

  #write(): void {
    const pieces: Uint8Array[] = [];
    const finished: Queued[] = [];
    let bytes = 0;
    while (this.#queue.length > 0 && bytes < WRITE_BYTES && pieces.length < WRITE_PIECES) {
      const queued = this.#queue[0]!;
      if (this.#piece === queued.pieces.length) {
        finished.push(queued);
        this.#queue.shift();
        this.#piece = 0;
        continue;
      }
      const piece = this.#nextPiece(queued, WRITE_BYTES - bytes);
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
    this.#wire.write(pieces, (sent) => this.#written(sent ? bytes : undefined, finished));
  }

  /** The next piece of a reply, cut to `limit` bytes. */
  #nextPiece({ pieces }: Queued, limit: number): Uint8Array {
    const piece = pieces[this.#piece]!;
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

  /** @param bytes undefined: the wire is gone. */
  #written(bytes: number | undefined, finished: readonly Queued[]): void {
    this.#writing = false;
    // The first reply may have been finished by this write: then there is nothing left to let go of early.
    const head = this.#queue[0];
    if (this.#unpinHead && head !== undefined && head.copied > 0) head.reply.unpin?.();
    this.#unpinHead = false;
    if (this.#queue.length === 0) this.#slow = false;
    for (const queued of finished) this.#done(queued);
    if (this.#closed) this.#abandon();
    else if (bytes === undefined) this.#events.onGone();
    else {
      if (this.#queue.length > 0) this.#write();
      this.#events.onProgress(bytes);
    }
  }

  #abandon(): void {
    for (const queued of this.#queue.splice(0)) this.#done(queued);
  }
}

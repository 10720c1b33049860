// A bounded collector for decompressed pieces, and the errors of decompression.
import { FloeError } from '../../base/error.ts';

/** Pieces of output, together at most `limit` bytes. */
export class Output {
  readonly #limit: number;
  readonly #pieces: Uint8Array[] = [];
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How much more may come. */
  get room(): number {
    return this.#limit - this.#bytes;
  }

  /** @throws FloeError `exhausted` when `bytes` more are too many. */
  reserve(bytes: number): void {
    if (bytes > this.room) throw bomb(this.#limit);
  }

  add(piece: Uint8Array): void {
    this.reserve(piece.length);
    this.#pieces.push(piece);
    this.#bytes += piece.length;
  }

  join(): Uint8Array {
    return this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.#bytes);
  }
}

/** More output than allowed. */
export function bomb(limit: number): FloeError {
  return new FloeError(
    'exhausted',
    `compressed batch unfolds into more than ${limit} bytes (batch.decompressed.max.bytes)`,
    { details: { limit } },
  );
}

/** Bytes that the codec refuses. */
export function unreadable(codec: string, cause: unknown): FloeError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new FloeError('corrupt', `${codec} data can not be decompressed: ${reason}`, { cause });
}

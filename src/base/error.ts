// The one error class of Floe: a closed list of codes, each telling the caller what to do next.
// Not for: bugs (base/assert.ts) and the mistakes of Kafka clients (codes of protocol/errors.ts in the reply).
import type { ErrorCode } from './error-code.ts';
import { translateSystemError } from './system-error.ts';

export type { ErrorCode } from './error-code.ts';

/** Plain facts for programs and logs beside the sentence for people. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null>>;

export interface ErrorOptions {
  readonly cause?: unknown;
  readonly details?: ErrorDetails;
}

export class FloeError extends Error {
  override readonly name = 'FloeError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
  }

  /** Normalises anything caught; a FloeError passes through, system errors are translated. */
  static from(caught: unknown, doing?: string): FloeError {
    if (caught instanceof FloeError) return caught;
    const system = translateSystemError(caught);
    const text = caught instanceof Error ? caught.message : String(caught);
    const message = doing === undefined ? text : `${doing}: ${text}`;
    return new FloeError(system ?? 'internal', message, { cause: caught });
  }
}

/** True when `caught` is a FloeError, of one of `codes` if any are given. */
export function isFloeError(caught: unknown, ...codes: ErrorCode[]): caught is FloeError {
  return caught instanceof FloeError && (codes.length === 0 || codes.includes(caught.code));
}

/** A FloeError as plain data, to cross a thread or an HTTP border. */
export interface ErrorShape {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
}

export function errorToShape(caught: unknown): ErrorShape {
  const { code, message, details } = FloeError.from(caught);
  return { code, message, details };
}

export function errorFromShape(shape: ErrorShape): FloeError {
  return new FloeError(shape.code, shape.message, { details: shape.details });
}

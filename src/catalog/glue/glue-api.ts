// AWS Glue's Data Catalog as far as it is used: one request each, never repeated inside, failures told as what they
// prove. Source: AWS Glue API reference; @aws-sdk/client-glue.
import { GlueClient, type GlueClientConfig, type GlueServiceException } from '@aws-sdk/client-glue';
import type { Clock } from '../../base/clock.ts';
import { type ErrorCode, FloeError } from '../../base/error.ts';
import type { AwsCredentials } from '../rest/sigv4.ts';

export interface GlueAccess {
  readonly region: string;
  /** Empty: AWS's own for the region. */
  readonly endpoint: string;
  /** Undefined: the SDK looks for them (environment, shared files, roles). */
  readonly credentials: AwsCredentials | undefined;
  readonly timeoutMs: number;
}

/** Exceptions that say "refused": nothing was changed. All are HTTP 400. */
const REFUSALS: Readonly<Record<string, ErrorCode>> = {
  EntityNotFoundException: 'not-found',
  AlreadyExistsException: 'conflict',
  ConcurrentModificationException: 'conflict',
  VersionMismatchException: 'conflict',
  AccessDeniedException: 'unauthorized',
  InvalidInputException: 'invalid',
  ValidationException: 'invalid',
  GlueEncryptionException: 'invalid',
  ResourceNumberLimitExceededException: 'exhausted',
  ResourceNotReadyException: 'unavailable',
  ThrottlingException: 'unavailable',
  ExpiredTokenException: 'unauthorized',
  InvalidSignatureException: 'unauthorized',
  UnrecognizedClientException: 'unauthorized',
  IncompleteSignatureException: 'unauthorized',
};

/** What never left this machine. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'CredentialsProviderError',
]);

export class GlueApi {
  readonly #client: GlueClient;
  readonly #clock: Clock;
  readonly #timeoutMs: number;

  constructor({ region, endpoint, credentials, timeoutMs }: GlueAccess, clock: Clock) {
    const config: GlueClientConfig = {
      // An answer to a second attempt would say nothing about the first.
      maxAttempts: 1,
      ...(region === '' ? {} : { region }),
      ...(endpoint === '' ? {} : { endpoint }),
      ...(credentials === undefined ? {} : { credentials }),
    };
    this.#client = new GlueClient(config);
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Runs one request. `details.refused`: Glue itself said no. A change that may have happened fails with `timeout`,
   * a read that got no answer with `unavailable`.
   */
  async ask<T>(
    what: { readonly name: string; readonly changes: boolean },
    send: (client: GlueClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const deadline = new AbortController();
    const timer = this.#clock.setTimer(this.#timeoutMs, () => deadline.abort());
    try {
      return await send(this.#client, deadline.signal);
    } catch (caught) {
      throw glueError(caught, { ...what, late: deadline.signal.aborted });
    } finally {
      timer.cancel();
    }
  }

  stop(): void {
    this.#client.destroy();
  }
}

function glueError(
  caught: unknown,
  { name, changes, late }: { name: string; changes: boolean; late: boolean },
): FloeError {
  const error = caught as Partial<GlueServiceException> & { readonly code?: string };
  const status = error.$metadata?.httpStatusCode;
  const refused = REFUSALS[error.name ?? ''];
  const text = `Glue ${name}: ${error.name ?? 'Error'}${status === undefined ? '' : ` (${status})`}: ${error.message ?? ''}`;
  if (refused !== undefined) {
    const details = { refused: true, type: error.name! };
    return new FloeError(refused, text, { cause: caught, details });
  }
  const neverSent = !late && (NEVER_SENT.has(error.code ?? '') || NEVER_SENT.has(error.name ?? ''));
  const code = changes && !neverSent ? 'timeout' : 'unavailable';
  const message = late ? `${text} (catalog.request.timeout.ms)` : text;
  return new FloeError(code, message, { cause: caught, details: { refused: neverSent } });
}

// S3's answers as Floe's codes. The question that matters for a write is whether it can have happened:
// only an answer that says "refused", or a failure to connect at all, proves that it has not.
import { FloeError, isFloeError } from '../../base/error.ts';

/** What the request was: a lost reply matters only to those that change something. */
export type S3Operation = 'get' | 'head' | 'list' | 'delete' | 'part' | 'put';

interface SdkError {
  readonly name?: string;
  readonly message?: string;
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** No connection was made, so nothing was asked. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);
/** Errors that say "not now" and mean "not done". */
const REFUSED_FOR_NOW = new Set([
  'SlowDown',
  'ServiceUnavailable',
  'Throttling',
  'RequestLimitExceeded',
  'TooManyRequests',
  // The body arrived damaged or not at all.
  'BadDigest',
  'IncompleteBody',
  'RequestTimeout',
  'XAmzContentChecksumMismatch',
  'XAmzContentSHA256Mismatch',
  // The SDK has learnt the store's time from the refusal: the next request is signed with it.
  'RequestTimeTooSkewed',
]);
const CREDENTIALS = new Set([
  'CredentialsProviderError',
  'ExpiredToken',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'AccessDenied',
]);

/** Translates whatever the SDK threw. `late`: our own deadline aborted the request. */
export function s3Error(
  caught: unknown,
  { operation, key, late }: { operation: S3Operation; key: string; late: boolean },
): FloeError {
  if (isFloeError(caught)) return caught;
  const error = caught as SdkError;
  const status = error.$metadata?.httpStatusCode;
  const text = `${operation} "${key}": ${error.name ?? 'Error'}${status === undefined ? '' : ` ${status}`}: ${error.message ?? ''}${remedyOf(error)}`;
  const options = { cause: caught, details: { status: status ?? null, name: error.name ?? '' } };
  // The outcome of a put is unknown, everything else may simply be asked again.
  const unknown = operation === 'put' ? 'timeout' : 'unavailable';
  if (late) return new FloeError(unknown, `${text} (s3.request.timeout.ms)`, options);
  if (error.name === 'AbortError') return new FloeError('cancelled', text, options);
  return new FloeError(
    answeredCode(error, operation) ?? networkCode(error) ?? unknown,
    text,
    options,
  );
}

/** Where the cause is a setting, which one. */
function remedyOf({ name = '', code = '' }: SdkError): string {
  if (NEVER_SENT.has(code)) return ': check --s3-endpoint and the network';
  if (name === 'NoSuchBucket') return ': make the bucket, or name another';
  if (CREDENTIALS.has(name))
    return ': check s3.access.key.id, or the credentials that AWS’s tools use';
  return '';
}

function answeredCode(error: SdkError, operation: S3Operation) {
  const { name = '' } = error;
  const status = error.$metadata?.httpStatusCode;
  if (CREDENTIALS.has(name)) return 'unauthorized';
  if (REFUSED_FOR_NOW.has(name)) return 'unavailable';
  if (name === 'NoSuchBucket') return 'invalid';
  switch (status) {
    case 404:
      return operation === 'put' ? 'unavailable' : 'not-found';
    case 412:
      return 'conflict';
    case 409: // a concurrent conditional write or delete: neither was done, ask again
    case 429:
    case 503:
      return 'unavailable';
    case 401:
    case 403:
      return 'unauthorized';
    case 501:
      return 'unsupported';
    case 507:
      return 'exhausted';
    default:
      return status !== undefined && status >= 400 && status < 500 ? 'invalid' : undefined;
  }
}

function networkCode(error: SdkError) {
  if (error.code !== undefined && NEVER_SENT.has(error.code)) return 'unavailable';
  // The SDK's own limit for connecting.
  if (error.name === 'TimeoutError' && /connect/i.test(error.message ?? '')) return 'unavailable';
  return undefined;
}

// AWS Signature Version 4 in request headers, for S3: of a path that is encoded once, with whatever stands for the body's
// hash. The SDK's signer does the same for any service; this one is for requests that are sent without the SDK
// (s3-wire.ts). Not for: where keys come from.
import { createHash, createHmac } from 'node:crypto';
import { dateAt } from '../../base/clock.ts';

export interface SigningKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

export interface SigningScope {
  readonly region: string;
  /** `s3`, unless the endpoint says otherwise. */
  readonly service: string;
}

/** What is signed. Header names in lower case, `host` among them, `x-amz-content-sha256` too; no query. */
export interface SignedRequest {
  readonly method: string;
  /** As it is sent. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Stands for the hash of a body that isn't signed. */
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';

const ALGORITHM = 'AWS4-HMAC-SHA256';

/**
 * Adds `x-amz-date`, `x-amz-security-token` where there is one, and `authorization` to the request's headers.
 * Source: "Authenticating Requests: Using the Authorization Header" of the S3 API reference.
 */
export function signedHeaders(
  request: SignedRequest,
  by: { readonly keys: SigningKeys; readonly scope: SigningScope; readonly nowMs: number },
): Record<string, string> {
  const { keys, scope, nowMs } = by;
  const date = dateAt(nowMs)
    .toISOString()
    .replace(/\.\d+|[-:]/g, '');
  const headers: Record<string, string> = { ...request.headers, 'x-amz-date': date };
  if (keys.sessionToken !== undefined) headers['x-amz-security-token'] = keys.sessionToken;
  const names = Object.keys(headers).sort();
  const signed = names.join(';');
  const canonical = [
    request.method,
    request.path,
    '',
    ...names.map((name) => `${name}:${headers[name]!.trim().replace(/\s+/g, ' ')}`),
    '',
    signed,
    headers['x-amz-content-sha256'],
  ].join('\n');
  const day = date.slice(0, 8);
  const within = `${day}/${scope.region}/${scope.service}/aws4_request`;
  const text = [ALGORITHM, date, within, sha256Hex([Buffer.from(canonical)])].join('\n');
  const signature = hmac(signingKey(keys, scope, day), text).toString('hex');
  headers['authorization'] =
    `${ALGORITHM} Credential=${keys.accessKeyId}/${within}, SignedHeaders=${signed}, Signature=${signature}`;
  return headers;
}

/** What `x-amz-content-sha256` says of a body that is signed. */
export function sha256Hex(parts: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
}

function signingKey(keys: SigningKeys, { region, service }: SigningScope, day: string): Buffer {
  const ofDay = hmac(`AWS4${keys.secretAccessKey}`, day);
  return hmac(hmac(hmac(ofDay, region), service), 'aws4_request');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

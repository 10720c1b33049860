// AWS Signature Version 4 for a REST catalog (AWS Glue's and S3 Tables' Iceberg endpoints, API Gateway).
// The SDK's own signer and credentials; here only the request's shape is turned into what it takes.
import { createHash, createHmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import { type Clock, dateAt } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { OutgoingRequest, RestAuth } from './http.ts';

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface SigV4Options {
  readonly region: string;
  /** Name of the service that is signed for: `glue`, `s3tables`, `execute-api`. */
  readonly service: string;
  readonly credentials: () => Promise<AwsCredentials>;
  readonly clock: Clock;
}

export class SigV4Auth implements RestAuth {
  readonly #options: SigV4Options;
  readonly #signer: SignatureV4;

  constructor(options: SigV4Options) {
    this.#options = options;
    const { region, service, credentials } = options;
    this.#signer = new SignatureV4({ region, service, credentials, sha256: Sha256 });
  }

  async headersFor(request: OutgoingRequest): Promise<Readonly<Record<string, string>>> {
    const url = new URL(request.url);
    const query: Record<string, string | string[]> = {};
    for (const name of new Set(url.searchParams.keys()))
      query[name] = url.searchParams.getAll(name);
    try {
      const signed = await this.#signer.sign(
        {
          method: request.method,
          protocol: url.protocol,
          hostname: url.hostname,
          ...(url.port === '' ? {} : { port: Number(url.port) }),
          path: url.pathname,
          query,
          headers: { ...request.headers, host: url.host },
          body: request.body,
        },
        { signingDate: dateAt(this.#options.clock.now()) },
      );
      const { host: _host, ...headers } = signed.headers;
      return headers;
    } catch (caught) {
      throw new FloeError(
        'unauthorized',
        `the request can't be signed (SigV4): ${FloeError.from(caught).message}`,
        { cause: caught },
      );
    }
  }

  /** The clock or the keys are wrong: signing again gives the same. */
  refused(): boolean {
    return false;
  }
}

/** SHA-256, or HMAC-SHA-256 with a secret, in the shape that the signer wants. */
class Sha256 {
  readonly #secret: Uint8Array | string | undefined;
  #chunks: (Uint8Array | string)[] = [];

  constructor(secret?: Uint8Array | string | ArrayBuffer | ArrayBufferView) {
    this.#secret = secret === undefined ? undefined : plain(secret);
  }

  update(chunk: Uint8Array | string | ArrayBuffer | ArrayBufferView): void {
    this.#chunks.push(plain(chunk));
  }

  async digest(): Promise<Uint8Array> {
    const hash =
      this.#secret === undefined ? createHash('sha256') : createHmac('sha256', this.#secret);
    for (const chunk of this.#chunks) hash.update(chunk);
    return hash.digest();
  }

  reset(): void {
    this.#chunks = [];
  }
}

function plain(data: Uint8Array | string | ArrayBuffer | ArrayBufferView): Uint8Array | string {
  if (typeof data === 'string' || data instanceof Uint8Array) return data;
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}

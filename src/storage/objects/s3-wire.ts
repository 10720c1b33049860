// Single requests to S3 without the SDK, for those that carry the bytes: a PUT or GET by the SDK passes some thirty
// layers, which cost as much processor time as the kernel's copy of a whole flush. Endpoint, region and credentials are the SDK's:
// its rules are asked once where a bucket's objects lie, by a request that never leaves.
// Not for: buckets whose requests are signed in another way (directory buckets' sessions): undefined, the SDK does those.
import http from 'node:http';
import https from 'node:https';
import { PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { type Clock, dateMs } from '../../base/clock.ts';
import { bodySize } from './keys.ts';
import { crc32Base64, type S3Settings } from './s3-context.ts';
import { type SigningScope, sha256Hex, signedHeaders, UNSIGNED_PAYLOAD } from './s3-sign.ts';

/** Agents that hold the sockets; the SDK's requests share them. */
export interface WireAgents {
  readonly httpAgent: http.Agent;
  readonly httpsAgent: https.Agent;
}

export interface WireRequest {
  readonly method: 'GET' | 'PUT';
  /** The whole key. */
  readonly key: string;
  /** Further ones; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** With a body goes its CRC32, which the store checks: what it acknowledges is what we sent. */
  readonly body?: readonly Uint8Array[];
  readonly signal: AbortSignal;
}

/** Where a bucket's objects lie. */
interface Place {
  readonly secure: boolean;
  readonly hostname: string;
  readonly port: number | undefined;
  /** Path before a key, ends with a slash. */
  readonly path: string;
  readonly scope: SigningScope;
}

const USER_AGENT = 'floe';
/** S3's errors are shorter. */
const MAX_ERROR_BYTES = 64 * 1024;
/** What asks the SDK for the place of a key. */
const ANY_KEY = 'k';
/** How S3 makes names of directory buckets and of their access points end. */
const DIRECTORY_BUCKET = /--xa?-s3$/;
const EMPTY_SHA256 = sha256Hex([]);

export class S3Wire {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #settings: S3Settings;
  readonly #agents: WireAgents;
  readonly #clock: Clock;
  #place: Promise<Place | undefined> | undefined;
  /** How far the store's clock is ahead of ours, once it has complained. */
  #skewMs = 0;

  constructor(options: {
    readonly client: S3Client;
    readonly bucket: string;
    readonly settings: S3Settings;
    readonly agents: WireAgents;
    readonly clock: Clock;
  }) {
    this.#client = options.client;
    this.#bucket = options.bucket;
    this.#settings = options.settings;
    this.#agents = options.agents;
    this.#clock = options.clock;
  }

  /**
   * Sends a request. @returns the answer of a success, its body unread; undefined when only the SDK can ask this bucket.
   * @throws errors in the SDK's shape (`name`, `$metadata.httpStatusCode`, or a socket's `code`), see s3-errors.ts.
   */
  async send(request: WireRequest): Promise<http.IncomingMessage | undefined> {
    const place = await this.#placed();
    if (place === undefined) return undefined;
    const keys = await this.#client.config.credentials();
    const path = `${place.path}${encodeKey(request.key)}`;
    const { body = [] } = request;
    const headers = signedHeaders(
      { method: request.method, path, headers: this.#headers(place, request) },
      { keys, scope: place.scope, nowMs: this.#clock.now() + this.#skewMs },
    );
    const sent = this.#open(place, {
      method: request.method,
      path,
      headers,
      signal: request.signal,
    });
    const answered = answerOf(sent);
    sent.cork();
    for (const part of body) sent.write(part);
    sent.end();
    const answer = await answered;
    if (answer.statusCode! < 300) return answer;
    throw await this.#refusal(sent, answer);
  }

  #headers(place: Place, { body, headers }: WireRequest): Record<string, string> {
    const usualPort = place.secure ? 443 : 80;
    const named = place.port === undefined || place.port === usualPort;
    const common = {
      ...headers,
      host: named ? place.hostname : `${place.hostname}:${place.port}`,
      'user-agent': USER_AGENT,
    };
    if (body === undefined) return { ...common, 'x-amz-content-sha256': EMPTY_SHA256 };
    return {
      ...common,
      'content-length': String(bodySize(body)),
      'x-amz-checksum-crc32': crc32Base64(body),
      'x-amz-content-sha256': this.#settings['s3.sign.payload']
        ? sha256Hex(body)
        : UNSIGNED_PAYLOAD,
    };
  }

  #open(
    { secure, hostname, port }: Place,
    options: http.RequestOptions & { readonly signal: AbortSignal },
  ): http.ClientRequest {
    const { httpAgent, httpsAgent } = this.#agents;
    const to = { ...options, hostname, ...(port === undefined ? {} : { port }) };
    const sent = secure
      ? https.request({ ...to, agent: httpsAgent })
      : http.request({ ...to, agent: httpAgent });
    sent.once('socket', (socket) => {
      if (!socket.connecting) return;
      const limitMs = this.#settings['s3.connect.timeout.ms'];
      const timer = this.#clock.setTimer(limitMs, () => sent.destroy(connectTimeout(limitMs)));
      socket.once('connect', () => timer.cancel());
      sent.once('close', () => timer.cancel());
    });
    return sent;
  }

  /** What a refusal says. Nothing more of the body is sent. */
  async #refusal(sent: http.ClientRequest, answer: http.IncomingMessage): Promise<Error> {
    const status = answer.statusCode!;
    let text = '';
    try {
      answer.setEncoding('utf8');
      for await (const chunk of answer) {
        text += chunk;
        if (text.length > MAX_ERROR_BYTES) break;
      }
    } finally {
      if (!sent.writableFinished) sent.destroy();
    }
    const name = within(text, 'Code') ?? http.STATUS_CODES[status] ?? 'Error';
    if (name === 'RequestTimeTooSkewed') this.#learnTime(answer.headers.date);
    const message = within(text, 'Message') ?? text.slice(0, 200);
    return Object.assign(new Error(message), { name, $metadata: { httpStatusCode: status } });
  }

  /** The next request is signed with the store's time. */
  #learnTime(date: string | undefined): void {
    const theirsMs = dateMs(date ?? '');
    if (theirsMs !== undefined) this.#skewMs = theirsMs - this.#clock.now();
  }

  #placed(): Promise<Place | undefined> {
    this.#place ??= placeOf(this.#client, this.#bucket).catch((caught: unknown) => {
      // Such as a region that isn't known yet: asked again by the next request.
      this.#place = undefined;
      throw caught;
    });
    return this.#place;
  }
}

/** Stands for an answer to a request that was only prepared. */
const NOT_SENT = Symbol('not sent');

interface Prepared {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

interface AuthScheme {
  readonly name?: string;
  readonly signingName?: string;
  readonly signingRegion?: string;
}

/** Where a bucket’s objects lie by the SDK’s rules of endpoints. Undefined: its requests are not signed in the usual way. */
export async function placeOf(client: S3Client, bucket: string): Promise<Place | undefined> {
  // To ask for its place would begin a session.
  if (DIRECTORY_BUCKET.test(bucket)) return undefined;
  const command = new PutObjectCommand({ Bucket: bucket, Key: ANY_KEY });
  let prepared: Prepared | undefined;
  let scheme: AuthScheme | undefined;
  command.middlewareStack.add(
    (_next, context) => async (args) => {
      prepared = args.request as Prepared;
      const { endpointV2 } = context as {
        endpointV2?: { readonly properties?: { readonly authSchemes?: readonly AuthScheme[] } };
      };
      scheme = endpointV2?.properties?.authSchemes?.[0];
      return Promise.reject(NOT_SENT);
    },
    { step: 'build', priority: 'low' },
  );
  try {
    await client.send(command);
  } catch (caught) {
    if (caught !== NOT_SENT) throw caught;
  }
  if (prepared === undefined || (scheme !== undefined && scheme.name !== 'sigv4')) return undefined;
  const { protocol, hostname, port, path } = prepared;
  if (!path.endsWith(`/${ANY_KEY}`)) return undefined;
  return {
    secure: protocol === 'https:',
    hostname,
    port,
    path: path.slice(0, -ANY_KEY.length),
    scope: {
      region: scheme?.signingRegion ?? (await client.config.region()),
      service: scheme?.signingName ?? 's3',
    },
  };
}

/** The path of a key: each segment encoded once, as S3's signature wants it. */
export function encodeKey(key: string): string {
  return encodeURIComponent(key).replace(/%2F|[!'()*]/g, (found) =>
    found === '%2F' ? '/' : `%${found.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function answerOf(sent: http.ClientRequest): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    // Stays: an error behind the answer shows at the answer too.
    sent.on('error', reject);
    sent.once('response', resolve);
  });
}

function connectTimeout(limitMs: number): Error {
  const text = `no connection to the endpoint within ${limitMs} ms (s3.connect.timeout.ms)`;
  return Object.assign(new Error(text), { name: 'TimeoutError' });
}

/** Text of an element in S3's small XML. */
function within(xml: string, element: string): string | undefined {
  return new RegExp(`<${element}>([^<]*)</${element}>`).exec(xml)?.[1];
}

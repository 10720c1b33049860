// One HTTP request to a REST catalog, and what its failure proves. Nothing is sent twice behind the caller's back,
// except after a 401 or 419, which proves that the first request changed nothing.
// Source: Iceberg REST OpenAPI, IcebergErrorResponse; RFC 9110.
import type { Clock } from '../../base/clock.ts';
import { type ErrorCode, FloeError } from '../../base/error.ts';
import { parseIcebergJson, stringifyIcebergJson } from '../../formats/iceberg/index.ts';

/** The part of `fetch` that is used. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** What is about to be sent, for whoever signs it. */
export interface OutgoingRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** Says who we are. */
export interface RestAuth {
  /** Headers to add. @throws FloeError `unauthorized` or `unavailable`. */
  headersFor(request: OutgoingRequest): Promise<Readonly<Record<string, string>>>;
  /** The catalog refused what `headersFor` gave: true when it will give something else now. */
  refused(): boolean;
}

export const noAuth: RestAuth = { headersFor: async () => ({}), refused: () => false };

export interface RestHttpOptions {
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly auth: RestAuth;
  readonly timeoutMs: number;
  /** Longest answer that is read, in bytes. */
  readonly maxBytes: number;
}

export interface RestCall {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'HEAD';
  /** Absolute. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, bigints as plain numbers. */
  readonly body?: unknown;
  /** A failure that isn't a refusal leaves open whether anything changed: it is a `timeout`, not `unavailable`. */
  readonly changes: boolean;
}

export interface RestAnswer {
  /** 304: what the caller has is still true. */
  readonly status: number;
  /** Undefined when there is none. */
  readonly json: unknown;
  readonly etag: string | undefined;
  /** Characters of the body. */
  readonly size: number;
}

const REFUSALS: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'unauthorized',
  404: 'not-found',
  405: 'unsupported',
  406: 'unsupported',
  409: 'conflict',
  412: 'conflict',
  413: 'invalid',
  419: 'unauthorized',
  422: 'invalid',
  // Turned away at the door: nothing was done.
  429: 'unavailable',
  501: 'unsupported',
};

export class RestHttp {
  readonly #options: RestHttpOptions;

  constructor(options: RestHttpOptions) {
    this.#options = options;
  }

  /**
   * The answer's JSON; undefined when it has no body.
   * @throws FloeError by what the answer proves: see {@link RestCall.changes}; `details.status`, `details.type` (the
   *   catalog's exception name) and `details.retryAfterMs` as far as known.
   */
  async call(call: RestCall): Promise<unknown> {
    return (await this.exchange(call)).json;
  }

  /** As {@link call}, with what stands around the JSON. */
  async exchange(call: RestCall): Promise<RestAnswer> {
    const { auth } = this.#options;
    try {
      return await this.#send(call);
    } catch (caught) {
      const error = FloeError.from(caught);
      const stale = error.details['status'] === 401 || error.details['status'] === 419;
      if (!stale || !auth.refused()) throw error;
      return this.#send(call);
    }
  }

  async #send(call: RestCall): Promise<RestAnswer> {
    const { fetch, auth, clock, timeoutMs } = this.#options;
    const body = call.body === undefined ? undefined : stringifyIcebergJson(call.body);
    const headers = {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...call.headers,
    };
    const { method, url } = call;
    const extra = await auth.headersFor({ method, url, headers, body });
    const deadline = new AbortController();
    const timer = clock.setTimer(timeoutMs, () => deadline.abort());
    let sent = false;
    try {
      const response = await fetch(url, {
        method,
        headers: { ...headers, ...extra },
        signal: deadline.signal,
        // Another host would get our token.
        redirect: 'manual',
        ...(body === undefined ? {} : { body }),
      });
      sent = true;
      return await this.#answer(call, response);
    } catch (caught) {
      if (caught instanceof FloeError) throw caught;
      throw noAnswer(call, caught, { late: deadline.signal.aborted, sent, timeoutMs });
    } finally {
      timer.cancel();
    }
  }

  async #answer(call: RestCall, response: Response): Promise<RestAnswer> {
    const text = await readText(response, this.#options.maxBytes);
    const { status } = response;
    const etag = response.headers.get('etag') ?? undefined;
    const unchanged = status === 304 && call.headers?.['if-none-match'] !== undefined;
    if (unchanged || (status >= 200 && status < 300)) {
      const json = text.trim() === '' ? undefined : this.#parsed(call, text);
      return { status, json, etag, size: text.length };
    }
    throw refusal(call, response, text);
  }

  #parsed(call: RestCall, text: string): unknown {
    try {
      return parseIcebergJson(text);
    } catch (caught) {
      throw this.#unclear(call, `an answer that is not JSON (${shown(text)})`, caught);
    }
  }

  #unclear(call: RestCall, what: string, cause: unknown): FloeError {
    const code = call.changes ? 'timeout' : 'unavailable';
    return new FloeError(code, `the catalog gave ${what} to ${shownCall(call)}`, { cause });
  }
}

async function readText(response: Response, maxBytes: number): Promise<string> {
  if (response.body === null) return '';
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > maxBytes) {
      throw new Error(`the answer is longer than ${maxBytes} bytes (catalog.max.response.bytes)`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The host answered with something else than success. */
function refusal(call: RestCall, response: Response, text: string): FloeError {
  const { status } = response;
  const { type, message } = errorOf(text);
  const known = REFUSALS[status];
  const redirected = status >= 300 && status < 400;
  const code = known ?? (redirected ? 'invalid' : call.changes ? 'timeout' : 'unavailable');
  const where = redirected ? ` to ${response.headers.get('location') ?? 'nowhere'}` : '';
  const after = retryAfterMs(response.headers.get('retry-after'));
  return new FloeError(
    code,
    `the catalog answered ${status}${where} to ${shownCall(call)}: ${message || 'no reason given'}`,
    {
      details: {
        status,
        ...(type === undefined ? {} : { type }),
        ...(after === undefined ? {} : { retryAfterMs: after }),
      },
    },
  );
}

function errorOf(text: string): { readonly type?: string; readonly message: string } {
  try {
    const { error } = JSON.parse(text) as { error?: { type?: unknown; message?: unknown } };
    if (typeof error === 'object' && error !== null) {
      return {
        ...(typeof error.type === 'string' ? { type: error.type } : {}),
        message: String(error.message ?? ''),
      };
    }
  } catch {
    // Not the catalog but something before it: a proxy's page.
  }
  return { message: shown(text) };
}

/** Seconds, or a date, which is not worth a parser: undefined then. */
function retryAfterMs(header: string | null): number | undefined {
  return header !== null && /^\d{1,6}$/.test(header.trim()) ? Number(header) * 1000 : undefined;
}

/** Codes of failures before a connection stood: nothing can have been changed. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

function noAnswer(
  call: RestCall,
  caught: unknown,
  { late, sent, timeoutMs }: { late: boolean; sent: boolean; timeoutMs: number },
): FloeError {
  const cause = (caught as { cause?: { code?: unknown } } | undefined)?.cause;
  const neverSent = !sent && !late && NEVER_SENT.has(String(cause?.code));
  const reason = late
    ? `no answer within ${timeoutMs} ms (catalog.request.timeout.ms)`
    : FloeError.from(cause ?? caught).message;
  const code = call.changes && !neverSent ? 'timeout' : 'unavailable';
  return new FloeError(code, `the catalog can't be reached for ${shownCall(call)}: ${reason}`, {
    cause: caught,
    details: { neverSent },
  });
}

/** Without the query: it may hold what is nobody's business. */
const shownCall = ({ method, url }: RestCall) => `${method} ${url.split('?', 1)[0]}`;
const shown = (text: string) => text.trim().slice(0, 200);

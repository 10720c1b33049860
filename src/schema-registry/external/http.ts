// Requests to a schema registry elsewhere: bounded in time and size, tried at one address after the other, held back
// for a while after several failures in a row (whoever is down isn't helped by being asked more often).
// What an answer proves: `not-found` only from a registry that says so in its own words; everything else that isn't a
// schema, nonsense and refused passwords included, is `unavailable`: the table waits and says why.
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Prng } from '../../base/prng.ts';
import { backoffMs, retry } from '../../base/retry.ts';

export interface RegistryHttpOptions {
  /** Base addresses. */
  readonly urls: readonly string[];
  /** `user:password`, `bearer:TOKEN` or empty. */
  readonly auth: string;
  /** PEM; undefined: the system's. */
  readonly ca?: string | undefined;
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly clock: Clock;
  readonly prng: Prng;
}

/** Longest answer: schemas are bounded at 1 MiB, and references come one by one. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/** Failures in a row, all attempts counted as one, after which requests are held back. */
const TRIPS_AT = 3;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;

/** Confluent's codes: subject, version, schema not found. */
const NOT_FOUND_CODES: ReadonlySet<number> = new Set([40401, 40402, 40403]);

export class RegistryHttp {
  readonly #options: RegistryHttpOptions;
  #at = 0;
  #failures = 0;
  #heldUntilMs = -Infinity;
  #lastReason = '';

  constructor(options: RegistryHttpOptions) {
    this.#options = options;
  }

  /**
   * The JSON at a path.
   * @throws FloeError `not-found`, `invalid` (a refused registration), `unavailable`.
   */
  async call(path: string, body?: unknown): Promise<unknown> {
    const { clock, prng, attempts } = this.#options;
    const waitMs = this.#heldUntilMs - clock.monotonic();
    if (waitMs > 0) {
      throw new FloeError(
        'unavailable',
        `${this.#lastReason} (asked again in ${Math.ceil(waitMs / 1000)} s)`,
      );
    }
    const backoff = { clock, prng, attempts, firstDelayMs: 100, maxDelayMs: 2_000 };
    try {
      const answer = await retry(backoff, () => this.#attempt(path, body));
      this.#failures = 0;
      return answer;
    } catch (caught) {
      if (isFloeError(caught, 'unavailable')) this.#failed(caught.message);
      else this.#failures = 0;
      throw caught;
    }
  }

  #failed(reason: string): void {
    this.#failures += 1;
    this.#lastReason = reason;
    if (this.#failures < TRIPS_AT) return;
    const { clock, prng } = this.#options;
    const pause = { prng, firstDelayMs: FIRST_PAUSE_MS, maxDelayMs: MAX_PAUSE_MS };
    this.#heldUntilMs = clock.monotonic() + backoffMs(pause, this.#failures - TRIPS_AT + 1);
  }

  /** One request; the next one goes to the next address if this one failed. */
  async #attempt(path: string, body: unknown): Promise<unknown> {
    const { urls } = this.#options;
    const base = urls[this.#at % urls.length]!;
    try {
      const { status, text } = await this.#send(`${base.replace(/\/+$/, '')}${path}`, body);
      return answerOf({ base, path, status, text });
    } catch (caught) {
      const error = FloeError.from(caught);
      if (error.code === 'not-found' || error.code === 'invalid') throw error;
      this.#at += 1;
      if (caught instanceof FloeError) throw caught;
      throw new FloeError('unavailable', `schema registry ${shown(base)}: ${error.message}`, {
        cause: caught,
      });
    }
  }

  #send(url: string, body: unknown): Promise<{ readonly status: number; readonly text: string }> {
    const { clock, timeoutMs, auth, ca } = this.#options;
    const payload = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const send = url.startsWith('https:') ? httpsRequest : httpRequest;
      const request = send(url, {
        method: payload === undefined ? 'GET' : 'POST',
        headers: {
          accept: 'application/vnd.schemaregistry.v1+json, application/json',
          ...(auth === '' ? {} : { authorization: authorization(auth) }),
          ...(payload === undefined
            ? {}
            : { 'content-type': 'application/vnd.schemaregistry.v1+json' }),
        },
        ...(ca === undefined ? {} : { ca }),
      });
      const timer = clock.setTimer(timeoutMs, () => {
        request.destroy(new Error(`no answer within ${timeoutMs} ms`));
      });
      const done = (settle: () => void) => {
        timer.cancel();
        settle();
      };
      request.on('error', (error) => done(() => reject(error)));
      request.on('response', (response) => {
        textOf(response).then(
          (text) => done(() => resolve({ status: response.statusCode ?? 0, text })),
          (error: unknown) => done(() => reject(error)),
        );
      });
      request.end(payload);
    });
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) {
      response.destroy();
      throw new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function authorization(auth: string): string {
  if (auth.startsWith('bearer:')) return `Bearer ${auth.slice('bearer:'.length)}`;
  return `Basic ${Buffer.from(auth).toString('base64')}`;
}

interface Answer {
  readonly base: string;
  readonly path: string;
  readonly status: number;
  readonly text: string;
}

function answerOf({ base, path, status, text }: Answer): unknown {
  const where = `schema registry ${shown(base)}`;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  if (status === 200 && typeof parsed === 'object' && parsed !== null) return parsed;
  const { error_code: code, message } = (parsed ?? {}) as Record<string, unknown>;
  const said = typeof message === 'string' ? message : text.trim().slice(0, 200) || 'nothing';
  if (status === 404 && NOT_FOUND_CODES.has(Number(code))) {
    throw new FloeError('not-found', `${where}: ${said}`);
  }
  if (status === 409 || status === 422) throw new FloeError('invalid', `${where}: ${said}`);
  if (status === 401 || status === 403) {
    throw new FloeError(
      'unavailable',
      `${where} refuses ${status === 401 ? 'who Floe says it is' : 'Floe'} (${status}): set schema.registry.auth`,
    );
  }
  throw new FloeError('unavailable', `${where} answered ${status} to ${path}: ${said}`);
}

/** Without user and password. */
function shown(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}

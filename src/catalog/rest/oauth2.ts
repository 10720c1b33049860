// OAuth2 for a REST catalog: client credentials give a token, asked for again before its time is up and whenever the
// catalog refuses it. Source: RFC 6749 §4.4; Iceberg REST OpenAPI, getToken.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { SingleFlight } from '../../base/queue.ts';
import type { Fetch, RestAuth } from './http.ts';

export interface OAuth2Options {
  readonly fetch: Fetch;
  readonly clock: Clock;
  /** Absolute URL of the token endpoint. */
  readonly tokenUrl: string;
  /** `id:secret`, or a secret alone. */
  readonly credential: string;
  readonly scope: string;
  /** Further fields of the request, as some providers want (`audience`, `resource`). */
  readonly parameters: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

interface Held {
  readonly token: string;
  /** Monotonic time at which a new one is asked for. */
  readonly renewAtMs: number;
}

/** Lifetime taken for granted when the answer says none. */
const DEFAULT_LIFETIME_MS = 60 * 60 * 1000;
/** Share of a token's life after which it is renewed: late enough to be cheap, early enough for slow clocks. */
const RENEW_AT = 0.8;

/** A token given once and for all. */
export function bearerAuth(token: string): RestAuth {
  return {
    headersFor: async () => ({ authorization: `Bearer ${token}` }),
    refused: () => false,
  };
}

export class OAuth2Auth implements RestAuth {
  readonly #options: OAuth2Options;
  readonly #asking = new SingleFlight<'token', Held>();
  #held: Held | undefined;

  constructor(options: OAuth2Options) {
    this.#options = options;
  }

  async headersFor(): Promise<Readonly<Record<string, string>>> {
    return { authorization: `Bearer ${(await this.#token()).token}` };
  }

  refused(): boolean {
    this.#held = undefined;
    return true;
  }

  #token(): Promise<Held> {
    const held = this.#held;
    const now = this.#options.clock.monotonic();
    if (held !== undefined && now < held.renewAtMs) return Promise.resolve(held);
    return this.#asking.run('token', async () => {
      this.#held = await this.#ask();
      return this.#held;
    });
  }

  async #ask(): Promise<Held> {
    const { fetch, clock, tokenUrl, timeoutMs } = this.#options;
    const deadline = new AbortController();
    const timer = clock.setTimer(timeoutMs, () => deadline.abort());
    let status: number;
    let answer: Record<string, unknown>;
    try {
      const response = await fetch(tokenUrl, {
        method: 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          accept: 'application/json',
        },
        body: this.#form().toString(),
        signal: deadline.signal,
        redirect: 'manual',
      });
      status = response.status;
      answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
    } catch (caught) {
      const reason = deadline.signal.aborted
        ? `no answer within ${timeoutMs} ms`
        : FloeError.from((caught as { cause?: unknown }).cause ?? caught).message;
      throw new FloeError('unavailable', `the token endpoint ${tokenUrl} fails: ${reason}`, {
        cause: caught,
      });
    } finally {
      timer.cancel();
    }
    return this.#granted(status, answer);
  }

  #granted(status: number, answer: Record<string, unknown>): Held {
    const { tokenUrl, clock } = this.#options;
    const token = answer['access_token'];
    if (status === 200 && typeof token === 'string') {
      const seconds = Number(answer['expires_in']);
      const lifetimeMs = seconds > 0 ? seconds * 1000 : DEFAULT_LIFETIME_MS;
      return { token, renewAtMs: clock.monotonic() + lifetimeMs * RENEW_AT };
    }
    const reason = String(answer['error_description'] ?? answer['error'] ?? 'no token in it');
    throw new FloeError(
      status >= 500 || status === 429 ? 'unavailable' : 'unauthorized',
      `the token endpoint ${tokenUrl} answered ${status}: ${reason} (catalog.credential)`,
    );
  }

  #form(): URLSearchParams {
    const { credential, scope, parameters } = this.#options;
    const colon = credential.indexOf(':');
    return new URLSearchParams({
      grant_type: 'client_credentials',
      ...(colon < 0 ? {} : { client_id: credential.slice(0, colon) }),
      client_secret: credential.slice(colon + 1),
      ...(scope === '' ? {} : { scope }),
      ...parameters,
    });
  }
}

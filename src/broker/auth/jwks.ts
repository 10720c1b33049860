// The keys that sign tokens: a JSON web key set from a file or an HTTPS address, kept, read again when it is old or a
// token names a key that isn't in it. While the source fails, keys once read stay in use.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';

export interface KeySourceOptions {
  /** `file:///…`, `https://…` or `http://…`. */
  readonly url: string;
  /** After so long the keys are read again. */
  readonly refreshMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** An unknown key id reads the set again at most this often: such ids come from anybody. */
const COOLDOWN_MS = 10_000;
const FETCH_LIMIT_MS = 5_000;
const MAX_BYTES = 1024 * 1024;

type Keys = ReturnType<typeof createLocalJWKSet>;

/** Keys for jose. A look-up fails with FloeError `unavailable` only when no keys were ever read. */
export function keySource(options: KeySourceOptions): JWTVerifyGetKey {
  const { clock, refreshMs } = options;
  let keys: Keys | undefined;
  let triedMs = -Infinity;
  let loading: Promise<void> | undefined;
  const load = async () => {
    triedMs = clock.monotonic();
    try {
      keys = createLocalJWKSet(await read(options));
    } catch (caught) {
      const error = FloeError.from(caught);
      options.logger.warn({ url: options.url, error: error.message }, 'token keys not read');
      if (keys === undefined) {
        throw new FloeError('unavailable', `no token keys from ${options.url}: ${error.message}`);
      }
    } finally {
      loading = undefined;
    }
  };
  const reload = () => (loading ??= load());
  const age = () => clock.monotonic() - triedMs;
  return async (header, token) => {
    if (keys === undefined || age() >= refreshMs) await reload();
    try {
      return await keys!(header, token);
    } catch (caught) {
      if (!(caught instanceof errors.JWKSNoMatchingKey) || age() < COOLDOWN_MS) throw caught;
      await reload();
      return keys!(header, token);
    }
  };
}

async function read({ url }: KeySourceOptions): Promise<JSONWebKeySet> {
  return JSON.parse(await textOf(url)) as JSONWebKeySet;
}

async function textOf(url: string): Promise<string> {
  if (url.startsWith('file:')) return readFile(fileURLToPath(url), 'utf8');
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(FETCH_LIMIT_MS),
  });
  if (!response.ok) throw new FloeError('unavailable', `HTTP status ${response.status}`);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new FloeError('invalid', `more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

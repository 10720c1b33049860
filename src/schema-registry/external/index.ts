// Chooses between the embedded registry and one elsewhere.
import { readFileSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Prng } from '../../base/prng.ts';
import type { SchemaSource } from '../schema-source.ts';
import { RegistryHttp } from './http.ts';
import type { ExternalRegistrySettings } from './settings.ts';
import { externalSource } from './source.ts';

export { externalRegistrySettings } from './settings.ts';

export interface OpenSchemasOptions {
  readonly settings: ExternalRegistrySettings;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly embedded: SchemaSource;
}

/** Where table topics get schemas. @throws FloeError `invalid` for an address or file that can't be one. */
export function openSchemas({ settings, clock, prng, embedded }: OpenSchemasOptions): SchemaSource {
  const urls = settings['schema.registry.url'];
  if (urls.length === 0) return embedded;
  for (const url of urls) {
    if (!/^https?:\/\/[^/]/.test(url)) {
      throw new FloeError('invalid', `schema.registry.url: "${url}" is no http or https address`);
    }
  }
  const http = new RegistryHttp({
    urls,
    auth: settings['schema.registry.auth'],
    ca: certificates(settings['schema.registry.tls.ca']),
    timeoutMs: settings['schema.registry.request.timeout.ms'],
    attempts: settings['schema.registry.request.attempts'],
    clock,
    prng,
  });
  return externalSource({
    http,
    clock,
    cacheSize: settings['schema.registry.cache.size'],
    latestTtlMs: settings['schema.registry.latest.ttl.ms'],
  });
}

function certificates(file: string): string | undefined {
  if (file === '') return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch (caught) {
    throw new FloeError('invalid', `schema.registry.tls.ca: ${(caught as Error).message}`, {
      cause: caught,
    });
  }
}

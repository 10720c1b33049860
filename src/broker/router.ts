// The table of API keys: which handler serves which versions. ApiVersions is made from it, so what is not served
// is not advertised. handlers/README.md says how a handler is written and plugged in.
// Not for: decoding and order of replies (connection.ts).
import { assert } from '../base/assert.ts';
import type { AnyHandler } from './handler.ts';

export interface ServedApi {
  readonly apiKey: number;
  readonly minVersion: number;
  readonly maxVersion: number;
}

export class Router {
  readonly #byKey: (AnyHandler | undefined)[] = [];
  /** What ApiVersions advertises, by ascending key. */
  readonly served: readonly ServedApi[];

  constructor(handlers: readonly AnyHandler[]) {
    for (const handler of handlers) {
      const { api, versions } = handler;
      assert(this.#byKey[api.key] === undefined, `two handlers serve ${api.name}`);
      assert(
        versions.min <= versions.max && versions.min >= api.minVersion,
        `${api.name} can be served in versions ${versions.min}…${versions.max}`,
      );
      assert(versions.max <= api.maxVersion, `${api.name} v${versions.max} can be decoded`);
      this.#byKey[api.key] = handler;
    }
    this.served = handlers
      .map(({ api, versions, advertisedFrom }) => ({
        apiKey: api.key,
        minVersion: advertisedFrom ?? versions.min,
        maxVersion: versions.max,
      }))
      .sort((a, b) => a.apiKey - b.apiKey);
  }

  /** The same APIs, some of them served by others. */
  with(replacing: readonly AnyHandler[]): Router {
    const own = this.#byKey.filter((handler) => handler !== undefined);
    return new Router(
      own.map((handler) => replacing.find(({ api }) => api === handler.api) ?? handler),
    );
  }

  /** The handler of a key, whatever the version; undefined when the API is not served. */
  handler(apiKey: number): AnyHandler | undefined {
    return this.#byKey[apiKey];
  }
}

/** True when `handler` serves `version`. */
export function serves({ versions }: AnyHandler, version: number): boolean {
  return version >= versions.min && version <= versions.max;
}

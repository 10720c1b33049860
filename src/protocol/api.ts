// One API of the protocol: its key, versions, header versions, request and response.
import { type Message, message } from './compile.ts';
import type { Decoded, Encodable, Schema } from './fields.ts';
import { inVersions, parseVersions } from './versions.ts';

export interface Api<Req extends Schema = Schema, Res extends Schema = Schema> {
  readonly key: number;
  readonly name: string;
  /** Lowest and highest version that we read and write. */
  readonly minVersion: number;
  readonly maxVersion: number;
  readonly request: Message<Req>;
  readonly response: Message<Res>;
}

/** An API whatever its messages. */
// biome-ignore lint/suspicious/noExplicitAny: messages are invariant in their schema.
export type AnyApi = Api<any, any>;

/** The decoded request of an API. */
export type RequestOf<A extends AnyApi> = Decoded<A['request']['schema']>;
/** The decoded response of an API. */
export type ResponseOf<A extends AnyApi> = Decoded<A['response']['schema']>;
/** What a handler returns: the response with defaults left out at will. */
export type ReplyOf<A extends AnyApi> = Encodable<A['response']['schema']>;

export interface ApiOptions<Req extends Schema, Res extends Schema> {
  readonly key: number;
  readonly name: string;
  readonly versions: string;
  readonly flexible: string;
  readonly request: Req;
  readonly response: Res;
}

/** Defines an API. */
export function api<const Req extends Schema, const Res extends Schema>(
  options: ApiOptions<Req, Res>,
): Api<Req, Res> {
  const { key, name, versions, flexible } = options;
  const { min, max } = parseVersions(versions);
  return {
    key,
    name,
    minVersion: min,
    maxVersion: max,
    request: message({ name: `${name}Request`, versions, flexible, schema: options.request }),
    response: message({ name: `${name}Response`, versions, flexible, schema: options.response }),
  };
}

const PRODUCE_KEY = 0;
const API_VERSIONS_KEY = 18;

/**
 * Lowest version that ApiVersions tells of an API: the true one, but 0 for Produce. librdkafka takes a broker whose
 * Produce starts later for one without idempotence and modern batches (KAFKA-18659); it never sends those versions.
 */
export function advertisedMinVersion(of: AnyApi): number {
  return of.key === PRODUCE_KEY ? 0 : of.minVersion;
}

/** Flexible requests have header 2; the others header 1 (no client of ours sends header 0 any more). */
export function requestHeaderVersion(of: AnyApi, version: number): number {
  return inVersions(of.request.flexibleVersions, version) ? 2 : 1;
}

/** Flexible responses have header 1, except ApiVersions, whose reader can't know yet what we speak (KIP-511). */
export function responseHeaderVersion(of: AnyApi, version: number): number {
  if (of.key === API_VERSIONS_KEY) return 0;
  return inVersions(of.response.flexibleVersions, version) ? 1 : 0;
}

// Requests and responses with their headers: what lies in a frame, and what a frame is made of.
import { FloeError } from '../base/error.ts';
import { type AnyApi, requestHeaderVersion, responseHeaderVersion } from './api.ts';
import { apiByKey } from './apis.ts';
import { writeInt32 } from './bytes.ts';
import { message } from './compile.ts';
import type { Decoded, Encodable } from './fields.ts';
import { int16, int32, string } from './fields.ts';
import { Reader } from './reader.ts';
import { Writer } from './writer.ts';

/** Header of every request. The client id keeps its classic length even in flexible versions (KIP-482). */
export const requestHeader = message({
  name: 'RequestHeader',
  versions: '1-2',
  flexible: '2+',
  schema: {
    requestApiKey: int16,
    requestApiVersion: int16,
    correlationId: int32,
    clientId: string.nullable().classicLength(),
  },
});

/** Header of every response. */
export const responseHeader = message({
  name: 'ResponseHeader',
  versions: '0-1',
  flexible: '1+',
  schema: { correlationId: int32 },
});

/** A request whose header is read and whose body is not. */
export interface RequestEnvelope {
  readonly api: AnyApi;
  readonly version: number;
  /** False: `version` is one we can't read; only ApiVersions may answer that. */
  readonly readable: boolean;
  readonly correlationId: number;
  readonly clientId: string | null;
  /** Stands at the body: `api.request.decode(body, version)`. */
  readonly body: Reader;
}

/**
 * Reads the header of the request in `frame` (without its size).
 * @throws FloeError `unsupported` for an unknown API, `invalid` for a header that is none: close the connection.
 */
export function openRequest(frame: Uint8Array): RequestEnvelope {
  const reader = new Reader(frame);
  const key = reader.int16();
  const version = reader.int16();
  const api = apiByKey(key);
  if (api === undefined) throw new FloeError('unsupported', `unknown API key ${key}`);
  reader.position = 0;
  const header = requestHeader.decode(reader, requestHeaderVersion(api, version));
  return {
    api,
    version,
    readable: version >= api.minVersion && version <= api.maxVersion,
    correlationId: header.correlationId,
    clientId: header.clientId,
    body: reader,
  };
}

/** What identifies a request to be sent. */
export interface RequestOptions<A extends AnyApi> {
  readonly api: A;
  readonly version: number;
  readonly correlationId: number;
  readonly clientId: string | null;
  readonly request: Encodable<A['request']['schema']>;
}

/** A whole request frame, size first, in pieces for one vectored write. */
export function encodeRequest<A extends AnyApi>(options: RequestOptions<A>): Uint8Array[] {
  const { api, version, correlationId, clientId, request } = options;
  return frame((writer) => {
    requestHeader.encode(
      writer,
      { requestApiKey: api.key, requestApiVersion: version, correlationId, clientId },
      requestHeaderVersion(api, version),
    );
    api.request.encode(writer, request, version);
  });
}

export interface ResponseOptions<A extends AnyApi> {
  readonly api: A;
  readonly version: number;
  readonly correlationId: number;
  readonly response: Encodable<A['response']['schema']>;
}

/** A whole response frame, size first, in pieces for one vectored write; large record sets are not copied. */
export function encodeResponse<A extends AnyApi>(options: ResponseOptions<A>): Uint8Array[] {
  const { api, version, correlationId, response } = options;
  return frame((writer) => {
    responseHeader.encode(writer, { correlationId }, responseHeaderVersion(api, version));
    api.response.encode(writer, response, version);
  });
}

/** The response in `frame` (without its size) to a request of `api` and `version`. */
export function decodeResponse<A extends AnyApi>(
  api: A,
  version: number,
  frame: Uint8Array,
): { correlationId: number; response: Decoded<A['response']['schema']> } {
  const reader = new Reader(frame);
  const { correlationId } = responseHeader.decode(reader, responseHeaderVersion(api, version));
  return { correlationId, response: api.response.decode(reader, version) };
}

function frame(write: (writer: Writer) => void): Uint8Array[] {
  const writer = new Writer();
  writer.int32(0);
  write(writer);
  const size = writer.length - 4;
  const pieces = writer.finish();
  // The size was the first thing written, so it stands at the front of the writer's own first piece.
  writeInt32(pieces[0]!, 0, size);
  return pieces;
}

// From a frame to a request that a handler understands, and from a handler's reply to the pieces of a frame.
// Not for: deciding when a request may run and in which order replies leave (connection.ts).
import { assert } from '../base/assert.ts';
import { FloeError } from '../base/error.ts';
import { encodeResponse, openRequest, type RequestEnvelope } from '../protocol/envelope.ts';
import { Reader } from '../protocol/reader.ts';
import { SASL_AUTHENTICATE_KEY } from './auth/session.ts';
import type { AnyHandler } from './handler.ts';
import { type Router, serves } from './router.ts';

const API_VERSIONS_KEY = 18;

export interface OpenedRequest {
  readonly handler: AnyHandler;
  readonly envelope: RequestEnvelope;
  /** ApiVersions in a version unknown to us: to be answered in version 0 (KIP-511). */
  readonly unsupportedApiVersions: boolean;
  /** A SASL token without header (SaslHandshake v0), whose answer has none either. */
  readonly bareToken?: Uint8Array;
}

/** The API key of a frame, or −1 when it is too short for one. */
export function peekApiKey(frame: Buffer): number {
  return frame.length < 2 ? -1 : frame.readInt16BE(0);
}

/**
 * Reads the header of a request. The frame is copied unless it is `owned` or its handler works in place.
 * @throws FloeError `invalid` or `unsupported` for a frame that only a closed connection answers.
 */
export function openFrame(frame: Buffer, router: Router, owned: boolean): OpenedRequest {
  const handler = router.handler(peekApiKey(frame));
  const bytes = owned || handler?.inPlace === true ? frame : Buffer.from(frame);
  const envelope = openRequest(bytes);
  if (handler === undefined) {
    throw new FloeError('unsupported', `${envelope.api.name} is not served`);
  }
  const served = serves(handler, envelope.version);
  if (!served && handler.api.key !== API_VERSIONS_KEY) {
    throw new FloeError(
      'unsupported',
      `version ${envelope.version} of ${handler.api.name} is not served`,
    );
  }
  return { handler, envelope, unsupportedApiVersions: !served };
}

/** A frame that is a SASL token itself, as if it had come in a SaslAuthenticate. */
export function openBareToken(frame: Buffer, router: Router): OpenedRequest {
  const handler = router.handler(SASL_AUTHENTICATE_KEY);
  assert(handler !== undefined, 'SaslAuthenticate is served');
  const bareToken = Uint8Array.from(frame);
  const envelope: RequestEnvelope = {
    api: handler.api,
    version: 0,
    readable: true,
    correlationId: 0,
    clientId: null,
    body: new Reader(bareToken),
  };
  return { handler, envelope, unsupportedApiVersions: false, bareToken };
}

/** The decoded body. @throws FloeError `invalid` or `exhausted` when the bytes aren't one. */
export function decodeBody({ handler, envelope, bareToken }: OpenedRequest): never {
  if (bareToken !== undefined) return { authBytes: bareToken } as never;
  return handler.api.request.decode(envelope.body, envelope.version) as never;
}

export interface EncodedReply {
  readonly pieces: readonly Uint8Array[];
  readonly bytes: number;
}

/** A reply as pieces of one frame, length field included; large record sets are passed through uncopied. */
export function encodeReply(request: OpenedRequest, response: unknown): EncodedReply {
  const { handler, envelope, unsupportedApiVersions } = request;
  if (request.bareToken !== undefined) return bareReply(response);
  const pieces = encodeResponse({
    api: handler.api,
    version: unsupportedApiVersions ? 0 : envelope.version,
    correlationId: envelope.correlationId,
    response: response as never,
  });
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return { pieces, bytes };
}

function bareReply(response: unknown): EncodedReply {
  const { authBytes } = response as { readonly authBytes: Uint8Array };
  const size = Buffer.alloc(4);
  size.writeInt32BE(authBytes.length);
  return { pieces: [size, authBytes], bytes: size.length + authBytes.length };
}

// What fastify refuses before a handler sees the request, as a sentence that names thing, value and remedy: its own
// texts ("Unsupported Media Type") leave the caller to guess. Each HTTP face puts it into its own error body.

export interface Refusal {
  /** HTTP status, 4xx. */
  readonly status: number;
  readonly message: string;
}

export interface RefusedRequest {
  /** The request's Content-Type header. */
  readonly contentType: string | undefined;
  /** Media types that are read here, for people. */
  readonly accepts: string;
  /** What a body looks like, or is limited by: completes "send …". */
  readonly body: string;
}

/** Undefined when it isn't the framework that refused, or not the caller's fault. */
export function httpRefusal(caught: unknown, request: RefusedRequest): Refusal | undefined {
  const { code, statusCode, message } = caught as {
    readonly code?: unknown;
    readonly statusCode?: unknown;
    readonly message?: string;
  };
  if (typeof statusCode !== 'number' || statusCode < 400 || statusCode > 499) return undefined;
  const refusal = (text: string) => ({ status: statusCode, message: text });
  const { contentType, accepts, body } = request;
  switch (code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return refusal(
        `Content-Type ${contentType === undefined ? 'is missing' : `"${contentType}" is not read here`}: send ${accepts}`,
      );
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return refusal(`the body is larger than is taken here: send ${body}`);
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return refusal(`the body is empty: send ${body}`);
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
      return refusal(`the body is not JSON: send ${body}`);
    default:
      return refusal(message ?? 'the request was refused');
  }
}

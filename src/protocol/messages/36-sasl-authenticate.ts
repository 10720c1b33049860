// SaslAuthenticate (36): one token of the mechanism. v1 session life time for re-authentication
// (KIP-368), v2 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { bytes, int16, int64, string } from '../fields.ts';

export const saslAuthenticateApi = api({
  key: 36,
  name: 'SaslAuthenticate',
  versions: '0-2',
  flexible: '2+',
  request: {
    authBytes: bytes,
  },
  response: {
    errorCode: int16,
    errorMessage: string.nullable(),
    authBytes: bytes,
    sessionLifetimeMs: int64.since(1).default(0),
  },
});

export interface SaslAuthenticateRequest extends RequestOf<typeof saslAuthenticateApi> {}
export interface SaslAuthenticateResponse extends ResponseOf<typeof saslAuthenticateApi> {}
export type SaslAuthenticateReply = ReplyOf<typeof saslAuthenticateApi>;

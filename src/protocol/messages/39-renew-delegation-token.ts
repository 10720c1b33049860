// RenewDelegationToken (39). v2 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { bytes, int16, int32, int64 } from '../fields.ts';

export const renewDelegationTokenApi = api({
  key: 39,
  name: 'RenewDelegationToken',
  versions: '1-2',
  flexible: '2+',
  request: {
    hmac: bytes,
    renewPeriodMs: int64,
  },
  response: {
    errorCode: int16,
    expiryTimestampMs: int64,
    throttleTimeMs: int32.default(0),
  },
});

export interface RenewDelegationTokenRequest extends RequestOf<typeof renewDelegationTokenApi> {}
export interface RenewDelegationTokenResponse extends ResponseOf<typeof renewDelegationTokenApi> {}
export type RenewDelegationTokenReply = ReplyOf<typeof renewDelegationTokenApi>;

// ExpireDelegationToken (40). v2 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { bytes, int16, int32, int64 } from '../fields.ts';

export const expireDelegationTokenApi = api({
  key: 40,
  name: 'ExpireDelegationToken',
  versions: '1-2',
  flexible: '2+',
  request: {
    hmac: bytes,
    expiryTimePeriodMs: int64,
  },
  response: {
    errorCode: int16,
    expiryTimestampMs: int64,
    throttleTimeMs: int32.default(0),
  },
});

export interface ExpireDelegationTokenRequest extends RequestOf<typeof expireDelegationTokenApi> {}
export interface ExpireDelegationTokenResponse
  extends ResponseOf<typeof expireDelegationTokenApi> {}
export type ExpireDelegationTokenReply = ReplyOf<typeof expireDelegationTokenApi>;

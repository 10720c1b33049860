// CreateDelegationToken (38). v2 flexible, v3 requester apart from owner.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bytes, int16, int32, int64, string } from '../fields.ts';

export const createDelegationTokenApi = api({
  key: 38,
  name: 'CreateDelegationToken',
  versions: '1-3',
  flexible: '2+',
  request: {
    ownerPrincipalType: string.since(3).nullable(),
    ownerPrincipalName: string.since(3).nullable(),
    renewers: array({
      principalType: string,
      principalName: string,
    }),
    maxLifetimeMs: int64,
  },
  response: {
    errorCode: int16,
    principalType: string,
    principalName: string,
    tokenRequesterPrincipalType: string.since(3),
    tokenRequesterPrincipalName: string.since(3),
    issueTimestampMs: int64,
    expiryTimestampMs: int64,
    maxTimestampMs: int64,
    tokenId: string,
    hmac: bytes,
    throttleTimeMs: int32.default(0),
  },
});

export interface CreateDelegationTokenRequest extends RequestOf<typeof createDelegationTokenApi> {}
export interface CreateDelegationTokenResponse
  extends ResponseOf<typeof createDelegationTokenApi> {}
export type CreateDelegationTokenReply = ReplyOf<typeof createDelegationTokenApi>;

// DescribeDelegationToken (41). v2 flexible, v3 requester.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bytes, int16, int32, int64, string } from '../fields.ts';

export const describeDelegationTokenApi = api({
  key: 41,
  name: 'DescribeDelegationToken',
  versions: '1-3',
  flexible: '2+',
  request: {
    owners: array({
      principalType: string,
      principalName: string,
    }).nullable(),
  },
  response: {
    errorCode: int16,
    tokens: array({
      principalType: string,
      principalName: string,
      tokenRequesterPrincipalType: string.since(3),
      tokenRequesterPrincipalName: string.since(3),
      issueTimestamp: int64,
      expiryTimestamp: int64,
      maxTimestamp: int64,
      tokenId: string,
      hmac: bytes,
      renewers: array({
        principalType: string,
        principalName: string,
      }),
    }),
    throttleTimeMs: int32.default(0),
  },
});

export interface DescribeDelegationTokenRequest
  extends RequestOf<typeof describeDelegationTokenApi> {}
export interface DescribeDelegationTokenResponse
  extends ResponseOf<typeof describeDelegationTokenApi> {}
export type DescribeDelegationTokenReply = ReplyOf<typeof describeDelegationTokenApi>;

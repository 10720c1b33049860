// DescribeUserScramCredentials (50): mechanisms and iterations, never secrets (KIP-554).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int8, int16, int32, string } from '../fields.ts';

export const describeUserScramCredentialsApi = api({
  key: 50,
  name: 'DescribeUserScramCredentials',
  versions: '0',
  flexible: '0+',
  request: {
    users: array({
      name: string,
    }).nullable(),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable(),
    results: array({
      user: string,
      errorCode: int16,
      errorMessage: string.nullable(),
      credentialInfos: array({
        mechanism: int8,
        iterations: int32,
      }),
    }),
  },
});

export interface DescribeUserScramCredentialsRequest
  extends RequestOf<typeof describeUserScramCredentialsApi> {}
export interface DescribeUserScramCredentialsResponse
  extends ResponseOf<typeof describeUserScramCredentialsApi> {}
export type DescribeUserScramCredentialsReply = ReplyOf<typeof describeUserScramCredentialsApi>;

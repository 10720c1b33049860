// AlterUserScramCredentials (51): upserts and deletes (KIP-554). The password is salted by the
// client.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bytes, int8, int16, int32, string } from '../fields.ts';

export const alterUserScramCredentialsApi = api({
  key: 51,
  name: 'AlterUserScramCredentials',
  versions: '0',
  flexible: '0+',
  request: {
    deletions: array({
      name: string,
      mechanism: int8,
    }),
    upsertions: array({
      name: string,
      mechanism: int8,
      iterations: int32,
      salt: bytes,
      saltedPassword: bytes,
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    results: array({
      user: string,
      errorCode: int16,
      errorMessage: string.nullable(),
    }),
  },
});

export interface AlterUserScramCredentialsRequest
  extends RequestOf<typeof alterUserScramCredentialsApi> {}
export interface AlterUserScramCredentialsResponse
  extends ResponseOf<typeof alterUserScramCredentialsApi> {}
export type AlterUserScramCredentialsReply = ReplyOf<typeof alterUserScramCredentialsApi>;

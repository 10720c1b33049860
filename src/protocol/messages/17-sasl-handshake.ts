// SaslHandshake (17): picks the mechanism. v1: the tokens follow as SaslAuthenticate; v0: as bare
// frames. Never flexible, since librdkafka and Java send it before they know our versions.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, string } from '../fields.ts';

export const saslHandshakeApi = api({
  key: 17,
  name: 'SaslHandshake',
  versions: '0-1',
  flexible: 'none',
  request: {
    mechanism: string,
  },
  response: {
    errorCode: int16,
    mechanisms: array(string),
  },
});

export interface SaslHandshakeRequest extends RequestOf<typeof saslHandshakeApi> {}
export interface SaslHandshakeResponse extends ResponseOf<typeof saslHandshakeApi> {}
export type SaslHandshakeReply = ReplyOf<typeof saslHandshakeApi>;

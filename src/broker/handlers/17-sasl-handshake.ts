// SaslHandshake (17), versions 0–1: the client names a mechanism. v1: tokens follow in SaslAuthenticate; v0: as bare
// frames, for old clients. UNSUPPORTED_SASL_MECHANISM lists the enabled ones and ends the connection, as in Kafka.
// On a listener without SASL, or out of turn, ILLEGAL_SASL_STATE. What follows from what: auth/SPEC.md.
import { saslHandshakeApi } from '../../protocol/messages/17-sasl-handshake.ts';
import type { Handler } from '../handler.ts';

export const saslHandshakeHandler: Handler<typeof saslHandshakeApi> = {
  api: saslHandshakeApi,
  versions: { min: 0, max: 1 },
  handle({ mechanism }, context) {
    const { session } = context.connection;
    const { errorCode, mechanisms, end } = session.handshake(mechanism, context.apiVersion);
    if (end) context.endConnection();
    return { errorCode, mechanisms };
  },
};

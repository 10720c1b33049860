// SaslHandshake (17), versions 0–1: on a listener without SASL it is out of place, ILLEGAL_SASL_STATE, as in Kafka.
// Served so that a client configured for SASL hears that instead of a closed connection.
import { ErrorCode } from '../../protocol/errors.ts';
import { saslHandshakeApi } from '../../protocol/messages/17-sasl-handshake.ts';
import type { Handler } from '../handler.ts';

export const saslHandshakeHandler: Handler<typeof saslHandshakeApi> = {
  api: saslHandshakeApi,
  versions: { min: 0, max: 1 },
  handle: () => ({ errorCode: ErrorCode.ILLEGAL_SASL_STATE, mechanisms: [] }),
};

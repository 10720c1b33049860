// SaslAuthenticate (36), versions 0–2: one token of the mechanism that SaslHandshake agreed on. v1 tells how long the
// session lasts (KIP-368). A failure is SASL_AUTHENTICATION_FAILED, held back for connection.failed.authentication.
// delay.ms, and ends the connection. Bare tokens (handshake v0) come by here too: connection.ts wraps them, and
// a failure then only closes the connection, since they have no error code.
import { ErrorCode } from '../../protocol/errors.ts';
import { saslAuthenticateApi } from '../../protocol/messages/36-sasl-authenticate.ts';
import { HANG_UP, type Handler } from '../handler.ts';

export const saslAuthenticateHandler: Handler<typeof saslAuthenticateApi> = {
  api: saslAuthenticateApi,
  versions: { min: 0, max: 2 },
  async handle({ authBytes }, context) {
    const { session, signal } = context.connection;
    const bare = session.expectsBareToken;
    const answer = await session.authenticate(authBytes, signal);
    const { errorCode, errorMessage, token, lifetimeMs, end } = answer;
    if (bare && errorCode !== 0) return HANG_UP;
    if (end) context.endConnection();
    return { errorCode, errorMessage, authBytes: token, sessionLifetimeMs: lifetimeMs };
  },
  failed: (_request, { message }) => ({
    errorCode: ErrorCode.SASL_AUTHENTICATION_FAILED,
    errorMessage: message,
    authBytes: new Uint8Array(0),
  }),
};

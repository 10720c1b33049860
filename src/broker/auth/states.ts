// The SASL state machine of a connection as a table: states × events → next state and what is done.
// Pure; SPEC.md explains it, session.ts runs it. The table is total, so a state without an answer does not compile.

/**
 * - `open`          the listener asks nobody: every request is served
 * - `initial`       the client has to choose a mechanism
 * - `agreed`        it chose one: tokens are expected, nothing else
 * - `checking`      a token is being checked: what arrives meanwhile waits
 * - `authenticated` every request is served until the session ends
 * - `renewing`      `agreed` again, by a client that authenticates anew within its session (KIP-368)
 * - `rechecking`    `checking` again
 * - `failed`        nothing more is served; the connection closes
 */
export type State =
  | 'open'
  | 'initial'
  | 'agreed'
  | 'checking'
  | 'authenticated'
  | 'renewing'
  | 'rechecking'
  | 'failed';

/**
 * What arrives: `versions` is ApiVersions; `handshake` names an enabled mechanism, `strange` another one, `early` any
 * where authenticating anew isn't due; `token` is SaslAuthenticate or a bare token; `request` is any other API, `late`
 * any but SASL's after the session's end.
 * What a check says: `challenge` (another token, please), `success`, `failure`.
 */
export type FrameEvent =
  | 'versions'
  | 'handshake'
  | 'strange'
  | 'early'
  | 'token'
  | 'request'
  | 'late';
export type CheckEvent = 'challenge' | 'success' | 'failure';
export type Event = FrameEvent | CheckEvent;

/**
 * - `serve`       hand the request to its handler
 * - `agree`       answer the handshake with the mechanisms
 * - `check`       check the token
 * - `unsupported` answer UNSUPPORTED_SASL_MECHANISM; in `failed` the connection closes after it
 * - `illegal`     answer ILLEGAL_SASL_STATE; likewise
 * - `close`       close without an answer
 * - `wait`        keep the frame until the check is over
 * - `tell`        answer with what the check said
 * - `never`       can't happen
 */
export type Action =
  | 'serve'
  | 'agree'
  | 'check'
  | 'unsupported'
  | 'illegal'
  | 'close'
  | 'wait'
  | 'tell'
  | 'never';

export interface Transition {
  readonly to: State;
  readonly does: Action;
}

const go = (to: State, does: Action): Transition => ({ to, does });

const NO_CHECK = (state: State) =>
  ({
    challenge: go(state, 'never'),
    success: go(state, 'never'),
    failure: go(state, 'never'),
  }) as const;

/** While tokens are expected everything else ends the connection. */
const tokensOnly = (state: State, then: State): Readonly<Record<Event, Transition>> => ({
  versions: go('failed', 'close'),
  handshake: go('failed', 'illegal'),
  strange: go('failed', 'illegal'),
  early: go('failed', 'illegal'),
  token: go(then, 'check'),
  request: go('failed', 'close'),
  late: go('failed', 'close'),
  ...NO_CHECK(state),
});

/** While a token is checked everything waits; `more` is where a challenge leads. */
const whileChecking = (state: State, more: State): Readonly<Record<Event, Transition>> => ({
  versions: go(state, 'wait'),
  handshake: go(state, 'wait'),
  strange: go(state, 'wait'),
  early: go(state, 'wait'),
  token: go(state, 'wait'),
  request: go(state, 'wait'),
  late: go(state, 'wait'),
  challenge: go(more, 'tell'),
  success: go('authenticated', 'tell'),
  failure: go('failed', 'tell'),
});

export const TRANSITIONS: Readonly<Record<State, Readonly<Record<Event, Transition>>>> = {
  open: {
    versions: go('open', 'serve'),
    handshake: go('open', 'illegal'),
    strange: go('open', 'illegal'),
    early: go('open', 'illegal'),
    token: go('open', 'illegal'),
    request: go('open', 'serve'),
    late: go('open', 'never'),
    ...NO_CHECK('open'),
  },
  initial: {
    versions: go('initial', 'serve'),
    handshake: go('agreed', 'agree'),
    strange: go('failed', 'unsupported'),
    early: go('initial', 'never'),
    token: go('failed', 'illegal'),
    request: go('failed', 'close'),
    late: go('initial', 'never'),
    ...NO_CHECK('initial'),
  },
  agreed: tokensOnly('agreed', 'checking'),
  checking: whileChecking('checking', 'agreed'),
  authenticated: {
    versions: go('authenticated', 'serve'),
    handshake: go('renewing', 'agree'),
    strange: go('failed', 'unsupported'),
    early: go('authenticated', 'illegal'),
    token: go('authenticated', 'illegal'),
    request: go('authenticated', 'serve'),
    late: go('failed', 'close'),
    ...NO_CHECK('authenticated'),
  },
  renewing: tokensOnly('renewing', 'rechecking'),
  rechecking: whileChecking('rechecking', 'renewing'),
  failed: {
    versions: go('failed', 'close'),
    handshake: go('failed', 'close'),
    strange: go('failed', 'close'),
    early: go('failed', 'close'),
    token: go('failed', 'close'),
    request: go('failed', 'close'),
    late: go('failed', 'close'),
    ...NO_CHECK('failed'),
  },
};

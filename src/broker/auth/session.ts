// Who the client of one connection is: runs the SASL state machine of states.ts over what the client sends, and holds
// what it may do. Sans I/O; the handlers of SaslHandshake and SaslAuthenticate and connection.ts ask it.
// Not for: what tokens mean (exchange.ts and the mechanisms).
import { AssertionError, assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { Access } from './access.ts';
import { ANONYMOUS, type Authorizer, type Principal } from './authorizer.ts';
import { type Exchange, failure, type Step, type Success } from './exchange.ts';
import { type ListenerAuth, usesSasl } from './listener-auth.ts';
import { type FrameEvent, type State, TRANSITIONS, type Transition } from './states.ts';

/** Keys of the APIs that states.ts tells apart. */
const SASL_HANDSHAKE_KEY = 17;
const API_VERSIONS_KEY = 18;
export const SASL_AUTHENTICATE_KEY = 36;

/** A client may authenticate anew this long after the last time, as in Kafka. */
const MIN_RENEWAL_MS = 1_000;

export interface SessionOptions {
  readonly listener: ListenerAuth;
  readonly authorizer: Authorizer;
  /** Address of the client, as ACLs name hosts. */
  readonly host: string;
  /** Subject of the certificate that the client showed, if any. */
  readonly subject: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** An answer to a handshake or a token; `end` says that the connection closes after it. */
export interface HandshakeAnswer {
  readonly errorCode: number;
  readonly mechanisms: readonly string[];
  readonly end: boolean;
}

export interface TokenAnswer {
  readonly errorCode: number;
  readonly errorMessage: string | null;
  readonly token: Uint8Array;
  /** Until the client has to authenticate anew, 0 without limit. */
  readonly lifetimeMs: number;
  readonly end: boolean;
}

const NOTHING = new Uint8Array(0);

export class Session {
  readonly #options: SessionOptions;
  readonly #openedMs: number;
  #state: State;
  #access: Access;
  #mechanism = '';
  #exchange: Exchange | undefined;
  /** True after a handshake of version 0: tokens come as bare frames. */
  #bare = false;
  /** Set while authenticating anew: what was agreed on at first. */
  #previousMechanism: string | undefined;
  #authenticatedMs = 0;
  /** When the session ends, monotonic. */
  #endsMs = Number.POSITIVE_INFINITY;

  constructor(options: SessionOptions) {
    const { listener, authorizer, host, subject, clock } = options;
    this.#options = options;
    this.#openedMs = clock.monotonic();
    const sasl = usesSasl(listener.protocol);
    this.#state = sasl ? 'initial' : 'open';
    const principal = sasl ? ANONYMOUS : listener.principal(subject);
    this.#access = new Access(authorizer, { principal, host });
  }

  /** Who the client is and what it may do. */
  get access(): Access {
    return this.#access;
  }

  get state(): State {
    return this.#state;
  }

  /** True where every request is served, so that none has to be looked at. */
  get free(): boolean {
    return (
      this.#state === 'open' ||
      (this.#state === 'authenticated' && this.#endsMs === Number.POSITIVE_INFINITY)
    );
  }

  /** True once the client may send large requests. */
  get trusted(): boolean {
    return this.#state === 'open' || this.#state === 'authenticated';
  }

  /** Largest request of a client that isn't trusted yet. */
  get maxTokenBytes(): number {
    return this.#options.listener.maxTokenBytes;
  }

  /** True while a token is checked: nothing else may start. */
  get busy(): boolean {
    return this.#state === 'checking' || this.#state === 'rechecking';
  }

  /** True when the next frame is a token without a header. */
  get expectsBareToken(): boolean {
    return this.#bare && (this.#state === 'agreed' || this.#state === 'renewing');
  }

  /** True when the client takes too long to authenticate. */
  overdue(nowMs: number): boolean {
    const begun = this.#state === 'initial' || this.#state === 'agreed';
    return begun && nowMs - this.#openedMs > this.#options.listener.timeoutMs;
  }

  /**
   * Whether a request may go to its handler.
   * @throws FloeError `unauthorized` when the connection has to close instead.
   */
  admit(apiKey: number): void {
    // These handlers ask the session themselves.
    if (apiKey === SASL_HANDSHAKE_KEY || apiKey === SASL_AUTHENTICATE_KEY) return;
    const late = this.#state === 'authenticated' && this.#now >= this.#endsMs;
    const event = late ? 'late' : apiKey === API_VERSIONS_KEY ? 'versions' : 'request';
    const was = this.#state;
    const { does } = this.#step(event);
    if (does === 'serve') return;
    assert(does === 'close', `a frame in state ${was} is served or ends the connection`);
    const why = late
      ? 'the session has ended: the client did not authenticate anew in time'
      : 'a request before the client authenticated';
    throw new FloeError('unauthorized', why);
  }

  /** SaslHandshake: the client names a mechanism. */
  handshake(mechanism: string, version: number): HandshakeAnswer {
    const { mechanisms } = this.#options.listener;
    const enabled = [...mechanisms.keys()];
    const { does, to } = this.#step(this.#handshakeEvent(mechanism));
    if (does === 'agree') {
      if (this.#isRenewing) this.#previousMechanism = this.#mechanism;
      this.#mechanism = mechanism;
      this.#bare = version === 0;
      this.#exchange = mechanisms.get(mechanism)!.begin();
      return { errorCode: 0, mechanisms: enabled, end: false };
    }
    const end = to === 'failed';
    if (does === 'unsupported') {
      this.#count('unsupported', 'failure');
      const errorCode = ErrorCode.UNSUPPORTED_SASL_MECHANISM;
      return { errorCode, mechanisms: enabled, end };
    }
    return { errorCode: ErrorCode.ILLEGAL_SASL_STATE, mechanisms: [], end };
  }

  /** SaslAuthenticate, or a bare token. An answer to a failure takes `failureDelayMs`, or until `signal`. */
  async authenticate(token: Uint8Array, signal: AbortSignal): Promise<TokenAnswer> {
    const { does, to } = this.#step('token');
    if (does !== 'check') {
      const errorMessage = 'a SASL token is out of place here';
      const end = to === 'failed';
      return { ...refusal(ErrorCode.ILLEGAL_SASL_STATE, errorMessage), end };
    }
    const step = this.#unchanged(await this.#check(token));
    this.#step(step.kind);
    if (step.kind === 'challenge') {
      const { token: challenge } = step;
      return { errorCode: 0, errorMessage: null, token: challenge, lifetimeMs: 0, end: false };
    }
    this.#exchange = undefined;
    if (step.kind === 'success') return this.#succeed(step);
    this.#count(this.#mechanism, 'failure');
    const { listener, logger, host, clock } = this.#options;
    const facts = { listener: listener.name, peer: host, mechanism: this.#mechanism };
    logger.info({ ...facts, reason: step.reason }, 'authentication failed');
    if (listener.failureDelayMs > 0) {
      await clock.sleep(listener.failureDelayMs, signal).catch(() => {});
    }
    const what = this.#previousMechanism === undefined ? 'authentication' : 're-authentication';
    const errorMessage =
      step.message ??
      `Authentication failed during ${what} due to invalid credentials with SASL mechanism ${this.#mechanism}`;
    return { ...refusal(ErrorCode.SASL_AUTHENTICATION_FAILED, errorMessage), end: true };
  }

  async #check(token: Uint8Array): Promise<Step> {
    if (this.#previousMechanism !== undefined && this.#previousMechanism !== this.#mechanism) {
      const message = `SASL mechanism '${this.#mechanism}' requested by client is not supported for re-authentication of mechanism '${this.#previousMechanism}'`;
      return failure('another mechanism than before', message);
    }
    assert(this.#exchange !== undefined, 'a handshake began the exchange');
    try {
      return await this.#exchange.step(token);
    } catch (caught) {
      if (caught instanceof AssertionError) throw caught;
      return failure(FloeError.from(caught).message);
    }
  }

  /** A client that authenticates anew is who it was. */
  #unchanged(step: Step): Step {
    const before = this.#access.who.principal;
    if (step.kind !== 'success' || !this.#isRenewing || step.user === before.name) return step;
    const names = `from ${before.type}: ${before.name} to ${before.type}: ${step.user}`;
    const message = `Cannot change principals during re-authentication ${names}`;
    return failure('another user than before', message);
  }

  #succeed({ token, user, expiresMs }: Success): TokenAnswer {
    const { authorizer, host, logger } = this.#options;
    const principal: Principal = { type: 'User', name: user };
    if (this.#previousMechanism === undefined) {
      this.#access = new Access(authorizer, { principal, host });
    }
    this.#previousMechanism = undefined;
    this.#authenticatedMs = this.#now;
    const lifetimeMs = this.#lifetime(expiresMs);
    this.#endsMs = lifetimeMs === undefined ? Infinity : this.#now + lifetimeMs;
    this.#count(this.#mechanism, 'success');
    logger.debug({ user, mechanism: this.#mechanism, peer: host }, 'authenticated');
    return { errorCode: 0, errorMessage: null, token, lifetimeMs: lifetimeMs ?? 0, end: false };
  }

  /** Until the session has to be renewed; undefined: never. */
  #lifetime(expiresMs: number | undefined): number | undefined {
    const { listener, clock } = this.#options;
    const limits: number[] = [];
    if (listener.maxReauthMs > 0) limits.push(listener.maxReauthMs);
    if (expiresMs !== undefined) limits.push(Math.max(0, expiresMs - clock.now()));
    return limits.length === 0 ? undefined : Math.min(...limits);
  }

  #handshakeEvent(mechanism: string): FrameEvent {
    if (this.#state === 'authenticated') {
      const due = this.#now - this.#authenticatedMs >= MIN_RENEWAL_MS;
      if (this.#endsMs === Infinity || !due) return 'early';
    }
    return this.#options.listener.mechanisms.has(mechanism) ? 'handshake' : 'strange';
  }

  get #isRenewing(): boolean {
    return this.#state === 'renewing' || this.#state === 'rechecking';
  }

  get #now(): number {
    return this.#options.clock.monotonic();
  }

  #step(event: keyof (typeof TRANSITIONS)[State]): Transition {
    const transition = TRANSITIONS[this.#state][event];
    const { does, to } = transition;
    assert(does !== 'never' && does !== 'wait', `"${event}" does not occur in ${this.#state}`);
    this.#state = to;
    return transition;
  }

  #count(mechanism: string, outcome: 'success' | 'failure'): void {
    this.#options.metrics.count(
      'floe_broker_authentications_total',
      'SASL authentications by listener, mechanism and outcome',
      { listener: this.#options.listener.name, mechanism, outcome },
    );
  }
}

function refusal(errorCode: number, errorMessage: string): Omit<TokenAnswer, 'end'> {
  return { errorCode, errorMessage, token: NOTHING, lifetimeMs: 0 };
}

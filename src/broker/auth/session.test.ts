// The SASL state machine: its table against what a client of good sense expects, over random exchanges (model), and
// sessions that end and are renewed, on a clock that moves when told.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { isFloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ALLOW_ALL } from './authorizer.ts';
import type { Mechanism, Step } from './exchange.ts';
import { type ListenerAuth, openListener } from './listener-auth.ts';
import { Session } from './session.ts';
import { type Event, type State, TRANSITIONS } from './states.ts';

const API_VERSIONS = 18;
const METADATA = 3;
const NEVER = new AbortController().signal;

/** Says what the token says: "ok:alice", "ok:alice:500" (valid for so long), "more", anything else fails. */
function echo(name: string, clock: ManualClock): Mechanism {
  return {
    name,
    begin: () => ({
      async step(token): Promise<Step> {
        const [verdict, user, validMs] = Buffer.from(token).toString().split(':');
        if (verdict === 'more') return { kind: 'challenge', token: Buffer.from('go on') };
        if (verdict === 'throws') throw new Error('broken');
        if (verdict !== 'ok') return { kind: 'failure', reason: 'as told' };
        const expiresMs = validMs === undefined ? {} : { expiresMs: clock.now() + Number(validMs) };
        return { kind: 'success', token: new Uint8Array(0), user: user!, ...expiresMs };
      },
    }),
  };
}

function session(options: Partial<ListenerAuth> = {}) {
  const clock = new ManualClock();
  const listener: ListenerAuth = {
    ...openListener('SASL'),
    protocol: 'SASL_PLAINTEXT',
    mechanisms: new Map(['A', 'B'].map((name) => [name, echo(name, clock)])),
    maxTokenBytes: 100,
    timeoutMs: 1_000,
    ...options,
  };
  const parts = { clock, logger: silentLogger, metrics: noMetrics, authorizer: ALLOW_ALL };
  const subject = new Session({ ...parts, listener, host: '10.0.0.1', subject: undefined });
  const token = (text: string) => subject.authenticate(Buffer.from(text), NEVER);
  return { clock, subject, token };
}

const served = (subject: Session, key = METADATA) => {
  try {
    subject.admit(key);
    return true;
  } catch (caught) {
    expect(isFloeError(caught, 'unauthorized')).toBe(true);
    return false;
  }
};

it('leads from a handshake over tokens to a user', async () => {
  const { subject, token } = session();
  expect(subject.access.who.principal.name).toBe('ANONYMOUS');
  expect(served(subject, API_VERSIONS)).toBe(true);
  expect(subject.handshake('A', 1)).toEqual({ errorCode: 0, mechanisms: ['A', 'B'], end: false });
  expect(await token('more')).toMatchObject({ errorCode: 0, end: false });
  expect(await token('ok:alice')).toMatchObject({ errorCode: 0, lifetimeMs: 0, end: false });
  expect(subject.access.who).toEqual({
    principal: { type: 'User', name: 'alice' },
    host: '10.0.0.1',
  });
  expect(served(subject)).toBe(true);
  expect(subject.free).toBe(true);
});

it('serves everything and no SASL on a listener without', async () => {
  const { subject, token } = session({ protocol: 'PLAINTEXT', mechanisms: new Map() });
  expect(served(subject)).toBe(true);
  expect(subject.handshake('A', 1)).toMatchObject({
    errorCode: ErrorCode.ILLEGAL_SASL_STATE,
    end: false,
  });
  expect(await token('ok:x')).toMatchObject({
    errorCode: ErrorCode.ILLEGAL_SASL_STATE,
    end: false,
  });
  expect(subject.access.who.principal.name).toBe('ANONYMOUS');
});

describe('what ends a connection', () => {
  it.each([
    ['a request before the client is known', (one: Session) => served(one)],
    ['a mechanism that is not enabled', (one: Session) => one.handshake('C', 1).end === false],
    [
      'a second handshake',
      (one: Session) => [one.handshake('A', 1), one.handshake('A', 1)][1]!.end === false,
    ],
    [
      'ApiVersions among tokens',
      (one: Session) => !one.handshake('A', 1).end && served(one, API_VERSIONS),
    ],
  ])('%s', (_what, act) => {
    const { subject } = session();
    expect(act(subject)).toBe(false);
    expect(subject.state).toBe('failed');
    expect(served(subject, API_VERSIONS)).toBe(false);
  });

  it('a token before a handshake', async () => {
    const { token } = session();
    expect(await token('ok:alice')).toMatchObject({
      errorCode: ErrorCode.ILLEGAL_SASL_STATE,
      end: true,
    });
  });

  it.each(['no', 'throws'])(
    'a token that fails (%s), told late and without the reason',
    async (text) => {
      const { subject, token, clock } = session({ failureDelayMs: 500 });
      subject.handshake('A', 1);
      let answered = false;
      const answer = token(text).finally(() => (answered = true));
      await clock.advance(499);
      expect(answered).toBe(false);
      await clock.advance(1);
      const { errorCode, errorMessage, end } = await answer;
      expect({ errorCode, end }).toEqual({
        errorCode: ErrorCode.SASL_AUTHENTICATION_FAILED,
        end: true,
      });
      expect(errorMessage).toBe(
        'Authentication failed during authentication due to invalid credentials with SASL mechanism A',
      );
    },
  );

  it('taking too long', async () => {
    const { subject, token, clock } = session();
    await clock.advance(1_000);
    expect(subject.overdue(clock.monotonic())).toBe(false);
    await clock.advance(1);
    expect(subject.overdue(clock.monotonic())).toBe(true);
    subject.handshake('A', 1);
    expect(subject.overdue(clock.monotonic())).toBe(true);
    await token('ok:alice');
    expect(subject.overdue(clock.monotonic())).toBe(false);
  });
});

describe('sessions that end', () => {
  async function authenticated(options: Partial<ListenerAuth>, text = 'ok:alice') {
    const all = session(options);
    all.subject.handshake('A', 1);
    return { ...all, answer: await all.token(text) };
  }

  it.each([
    [5_000, 'ok:alice', 5_000],
    [5_000, 'ok:alice:3000', 3_000],
    [2_000, 'ok:alice:3000', 2_000],
    [0, 'ok:alice:3000', 3_000],
    [0, 'ok:alice', 0],
  ])('last the shorter of limit (%d) and token (%s)', async (maxReauthMs, text, lifetimeMs) => {
    const { answer } = await authenticated({ maxReauthMs }, text);
    expect(answer.lifetimeMs).toBe(lifetimeMs);
  });

  it('serve nothing after their end', async () => {
    const { subject, clock } = await authenticated({ maxReauthMs: 5_000 });
    await clock.advance(4_999);
    expect(served(subject)).toBe(true);
    await clock.advance(1);
    expect(served(subject)).toBe(false);
  });

  it('are renewed by the same user and mechanism, also late', async () => {
    const { subject, clock, token } = await authenticated({ maxReauthMs: 5_000 });
    const { access } = subject;
    await clock.advance(6_000);
    expect(subject.handshake('A', 1)).toMatchObject({ errorCode: 0, end: false });
    expect(served(subject)).toBe(false);
    const again = await authenticated({ maxReauthMs: 5_000 });
    await again.clock.advance(4_000);
    again.subject.handshake('A', 1);
    expect(await again.token('ok:alice')).toMatchObject({ errorCode: 0, lifetimeMs: 5_000 });
    await again.clock.advance(4_999);
    expect(served(again.subject)).toBe(true);
    expect(subject.access).toBe(access);
    expect((await token('ok:alice')).errorCode).toBe(ErrorCode.ILLEGAL_SASL_STATE);
  });

  it.each([
    ['another user', 'A', 'ok:bob', /Cannot change principals during re-authentication/],
    ['another mechanism', 'B', 'ok:alice', /not supported for re-authentication of mechanism 'A'/],
    ['a wrong token', 'A', 'no', /failed during re-authentication/],
  ])('close on renewal by %s', async (_what, mechanism, text, message) => {
    const { subject, clock, token } = await authenticated({ maxReauthMs: 5_000 });
    await clock.advance(2_000);
    subject.handshake(mechanism, 1);
    const answer = await token(text);
    expect(answer).toMatchObject({ errorCode: ErrorCode.SASL_AUTHENTICATION_FAILED, end: true });
    expect(answer.errorMessage).toMatch(message);
    expect(served(subject)).toBe(false);
  });

  it('are not renewed within a second, or where they have no end', async () => {
    const soon = await authenticated({ maxReauthMs: 5_000 });
    await soon.clock.advance(999);
    const illegal = { errorCode: ErrorCode.ILLEGAL_SASL_STATE, end: false };
    expect(soon.subject.handshake('A', 1)).toMatchObject(illegal);
    const endless = await authenticated({});
    await endless.clock.advance(9_999);
    expect(endless.subject.handshake('A', 1)).toMatchObject(illegal);
    expect(served(endless.subject)).toBe(true);
  });
});

it('never leaves a state that waits for tokens but by a token or to its end', () => {
  const states = Object.keys(TRANSITIONS) as State[];
  for (const state of states) {
    for (const [event, { to, does }] of Object.entries(TRANSITIONS[state]) as [
      Event,
      { to: State; does: string },
    ][]) {
      if (does === 'serve') expect(['open', 'initial', 'authenticated']).toContain(state);
      if (to === 'authenticated' && state !== 'authenticated') expect(event).toBe('success');
      if (does === 'wait' || does === 'never') expect(to).toBe(state);
      if (state === 'failed') expect(to).toBe('failed');
    }
  }
});

it('serves a request only to who has shown a right token, whatever a client sends (A1)', async () => {
  const move = fc.oneof(
    fc.constant({ kind: 'request' } as const),
    fc.constant({ kind: 'versions' } as const),
    fc.record({ kind: fc.constant('handshake' as const), name: fc.constantFrom('A', 'B', 'C') }),
    fc.record({
      kind: fc.constant('token' as const),
      text: fc.constantFrom('ok:alice', 'ok:bob', 'more', 'no', 'throws'),
    }),
    fc.record({ kind: fc.constant('time' as const), ms: fc.integer({ min: 0, max: 3_000 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(move, { maxLength: 12 }), async (moves) => {
      const { subject, token, clock } = session({ maxReauthMs: 2_000 });
      // What a client of good sense would think it may do.
      let user: string | undefined;
      let endsMs = 0;
      let over = false;
      for (const one of moves) {
        if (one.kind === 'time') await clock.advance(one.ms);
        else if (one.kind === 'handshake') over ||= subject.handshake(one.name, 1).end;
        else if (one.kind === 'token') {
          const { errorCode, end, lifetimeMs } = await token(one.text);
          over ||= end;
          if (errorCode !== 0 || lifetimeMs === 0) continue;
          const name = one.text.slice(3);
          expect(user ?? name, 'a session keeps its user').toBe(name);
          user = name;
          endsMs = clock.monotonic() + lifetimeMs;
        } else {
          const may = served(subject, one.kind === 'versions' ? API_VERSIONS : METADATA);
          if (over) expect(may).toBe(false);
          if (one.kind === 'request' && may) {
            expect(user).toBeDefined();
            expect(subject.access.who.principal.name).toBe(user);
            expect(clock.monotonic()).toBeLessThan(endsMs);
          }
          over ||= !may;
        }
      }
    }),
    { seed: 11, numRuns: 500 },
  );
});

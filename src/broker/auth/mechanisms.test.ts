// Each mechanism against right, wrong and malformed tokens; what a client may learn from a refusal.
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { exportJWK, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { seededPrng } from '../../base/prng.ts';
import type { SecurityMetadata } from '../../metadata/security.ts';
import { firstMessage, lastMessage, type ScramClientOptions } from '../testing/scram-client.ts';
import { type TestFiles, testFiles } from '../testing/secure-broker.ts';
import { keySource } from './jwks.ts';
import { oauthMechanism } from './oauth.ts';
import { plainMechanism } from './plain.ts';
import { scramMechanism } from './scram.ts';
import { credentialOf, isProof, SCRAM_MECHANISMS, serverSignature } from './scram-keys.ts';
import { Users } from './users.ts';

const store: SecurityMetadata = {
  load: async () => ({ credentials: [], acls: [] }),
  alterCredentials: async () => {},
  alterAcls: async () => {},
};

async function someUsers(): Promise<Users> {
  const users = new Users({ store, credentials: [], prng: seededPrng(1) });
  await users.configure('alice', 'wonder');
  await users.configure('a=b,c', 'tricky');
  return users;
}

const text = (token: Uint8Array) => Buffer.from(token).toString();

describe('SCRAM', () => {
  it('agrees with the example of RFC 7677', () => {
    const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64');
    const name = { user: 'user', mechanism: 'SCRAM-SHA-256', iterations: 4096, salt } as const;
    const salted = Buffer.from(
      'c4a49510323ab4f952cac1fa99441939e78ea74d6be81ddf7096e87513dc615d',
      'hex',
    );
    const credential = credentialOf(name, salted);
    const about =
      'n=user,r=rOprNGfwEbeRWgbNEkqO,' +
      'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,' +
      'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0';
    const proof = Buffer.from('dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=', 'base64');
    expect(isProof(credential, about, proof)).toBe(true);
    expect(serverSignature(credential, about).toString('base64')).toBe(
      '6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=',
    );
    proof[3]! ^= 1;
    expect(isProof(credential, about, proof)).toBe(false);
    expect(isProof(credential, about, proof.subarray(1))).toBe(false);
  });

  const begin = async (mechanism: ScramClientOptions['mechanism'] = 'SCRAM-SHA-256') =>
    scramMechanism({ mechanism, users: await someUsers(), prng: seededPrng(2) }).begin();

  async function attempt(options: Partial<ScramClientOptions>) {
    const all = {
      mechanism: 'SCRAM-SHA-256',
      user: 'alice',
      password: 'wonder',
      ...options,
    } as const;
    const exchange = await begin(all.mechanism);
    const challenge = await exchange.step(firstMessage(all));
    if (challenge.kind !== 'challenge') return { end: challenge, expected: '' };
    const { message, expected } = lastMessage(all, challenge.token);
    return { end: await exchange.step(message), expected };
  }

  it.each(SCRAM_MECHANISMS)('%s: proves both sides', async (mechanism) => {
    const { end, expected } = await attempt({ mechanism });
    expect(end).toMatchObject({ kind: 'success', user: 'alice' });
    expect(end.kind === 'success' && text(end.token)).toBe(expected);
  });

  it('takes names with commas and equal signs, and a nonce of any printable kind', async () => {
    const { end } = await attempt({ user: 'a=b,c', password: 'tricky', nonce: '!+-~x' });
    expect(end).toMatchObject({ kind: 'success', user: 'a=b,c' });
  });

  it.each([
    ['a wrong password', { password: 'wunder' }],
    ['an unknown user', { user: 'mallory' }],
    ['a nonce that was changed', { changeNonce: true }],
    ['a binding other than at first', { header: 'y,,', headerAtLast: 'n,,' }],
  ])('refuses %s, with nothing for the client to learn', async (_what, options) => {
    const { end } = await attempt(options);
    expect(end).toMatchObject({ kind: 'failure' });
    expect(end).not.toHaveProperty('message');
  });

  it('answers unknown users like known ones, the same each time', async () => {
    const exchange = async (user: string) => {
      const users = await someUsers();
      const answers: string[] = [];
      for (let n = 0; n < 2; n += 1) {
        const one = scramMechanism({ mechanism: 'SCRAM-SHA-512', users, prng: seededPrng(n) });
        const step = await one.begin().step(Buffer.from(`n,,n=${user},r=x`));
        answers.push(step.kind === 'challenge' ? text(step.token).replace(/^r=[^,]+/, '') : '');
      }
      return answers;
    };
    const [known, unknown] = [await exchange('alice'), await exchange('mallory')];
    expect(unknown[0]).toBe(unknown[1]);
    expect(unknown[0]).toMatch(/^,s=[A-Za-z0-9+/]{32},i=4096$/);
    expect(known[0]).toMatch(/^,s=[A-Za-z0-9+/]{32},i=4096$/);
  });

  it.each([
    ['nothing', ''],
    ['no UTF-8', Buffer.from([0xff, 0xfe])],
    ['channel binding', 'p=tls-unique,,n=alice,r=abc'],
    ['a mandatory extension', 'n,,m=x,n=alice,r=abc'],
    ['another user to act for', 'n,a=bob,n=alice,r=abc'],
    ['a delegation token', 'n,,n=alice,r=abc,tokenauth=true'],
    ['a name with a lone =', 'n,,n=a=lice,r=abc'],
    ['no name', 'n,,n=,r=abc'],
    ['no nonce', 'n,,n=alice'],
    ['a nonce with a blank', 'n,,n=alice,r=a c'],
  ])('refuses a first message with %s', async (_what, message) => {
    const exchange = await begin();
    expect(await exchange.step(Buffer.from(message))).toMatchObject({ kind: 'failure' });
  });

  it.each(['', 'c=biws,r=abc', 'x', 'c=biws,r=,p=AAAA'])(
    'refuses "%s" as the last message',
    async (last) => {
      const exchange = await begin();
      await exchange.step(Buffer.from('n,,n=alice,r=abc'));
      expect(await exchange.step(Buffer.from(last))).toMatchObject({ kind: 'failure' });
    },
  );
});

describe('PLAIN', () => {
  const step = async (token: string | Buffer) =>
    plainMechanism(await someUsers())
      .begin()
      .step(Buffer.from(token));

  it('takes user and password, and the same name to act for', async () => {
    expect(await step('\0alice\0wonder')).toMatchObject({ kind: 'success', user: 'alice' });
    expect(await step('alice\0alice\0wonder')).toMatchObject({ kind: 'success', user: 'alice' });
  });

  it.each([
    '\0alice\0wrong',
    '\0mallory\0wonder',
    'bob\0alice\0wonder',
    '\0alice\0',
    '\0\0wonder',
    'alice\0wonder',
    '\0alice\0wonder\0',
    '',
  ])('refuses %j', async (token) => {
    expect(await step(token)).toMatchObject({ kind: 'failure' });
  });

  it('says the same of a wrong password and an unknown user', async () => {
    expect(await step('\0alice\0wrong')).toEqual(await step('\0mallory\0wonder'));
  });
});

describe('OAUTHBEARER', () => {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const others = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const nowSeconds = 1_700_000_000;
  let clock: ManualClock;
  let files: TestFiles;
  let url: string;

  beforeEach(async () => {
    clock = new ManualClock(nowSeconds * 1_000);
    files = testFiles();
    url = `file://${files.write('keys.json', await keySet(keys.publicKey, 'k1'))}`;
  });
  afterEach(() => files.remove());

  async function keySet(key: KeyObject, kid: string): Promise<string> {
    return JSON.stringify({ keys: [{ ...(await exportJWK(key)), kid, alg: 'ES256' }] });
  }

  const sign = (claims: JWTPayload, key = keys.privateKey, kid = 'k1') =>
    new SignJWT({
      sub: 'alice',
      iss: 'https://issuer',
      aud: 'floe',
      exp: nowSeconds + 600,
      scope: 'a b',
      ...claims,
    })
      .setProtectedHeader({ alg: 'ES256', kid })
      .sign(key);

  const mechanism = () =>
    oauthMechanism({
      keys: keySource({ url, refreshMs: 60_000, clock, logger: silentLogger }),
      issuer: 'https://issuer',
      audience: ['floe', 'other'],
      userClaim: 'sub',
      scopeClaim: 'scope',
      clockSkewSeconds: 30,
      clock,
    });

  const bearer = (token: string, header = 'n,,') =>
    Buffer.from(`${header}\u0001auth=Bearer ${token}\u0001\u0001`);

  it('takes a signed token, whose end is the end of the session', async () => {
    const step = await mechanism()
      .begin()
      .step(bearer(await sign({})));
    const expiresMs = (nowSeconds + 600) * 1_000;
    expect(step).toMatchObject({ kind: 'success', user: 'alice', expiresMs });
    const actingFor = bearer(await sign({}), 'n,a=alice,');
    expect(await mechanism().begin().step(actingFor)).toMatchObject({ kind: 'success' });
  });

  it('bears a skew of clocks, and no more', async () => {
    const late = await sign({ exp: nowSeconds - 29 });
    expect(await mechanism().begin().step(bearer(late))).toMatchObject({ kind: 'success' });
  });

  it.each<[string, JWTPayload]>([
    ['expired', { exp: nowSeconds - 31 }],
    ['not valid yet', { nbf: nowSeconds + 31 }],
    ['of another issuer', { iss: 'https://elsewhere' }],
    ['for somebody else', { aud: 'their-service' }],
    ['without a user', { sub: '' }],
    ['without an end', { exp: undefined }],
    ['with a scope of no form', { scope: { a: 1 } }],
  ])('refuses a token that is %s, in the two steps of RFC 7628', async (_what, claims) => {
    const exchange = mechanism().begin();
    const challenge = await exchange.step(bearer(await sign(claims)));
    expect(challenge.kind === 'challenge' && text(challenge.token)).toBe(
      '{"status":"invalid_token"}',
    );
    const end = await exchange.step(Buffer.from('\u0001'));
    expect(end).toMatchObject({ kind: 'failure', message: '{"status":"invalid_token"}' });
  });

  it.each([
    ['signed by nobody', () => new UnsecuredJWT({ sub: 'alice' }).setExpirationTime('1h').encode()],
    ['signed by somebody else', () => sign({}, others.privateKey)],
    ['signed by a key that is not in the set', () => sign({}, others.privateKey, 'k2')],
    [
      'signed with the public key as a secret',
      async () =>
        new SignJWT({ sub: 'alice', iss: 'https://issuer', aud: 'floe', exp: nowSeconds + 9 })
          .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
          .sign(Buffer.from(await keySet(keys.publicKey, 'k1'))),
    ],
    ['no token', () => 'abc.def'],
  ])('refuses a token that is %s', async (_what, token) => {
    const step = await mechanism()
      .begin()
      .step(bearer(await token()));
    expect(step.kind).toBe('challenge');
  });

  it.each([
    ['', 'nothing'],
    ['p=x,,\u0001auth=Bearer abc\u0001\u0001', 'channel binding'],
    ['n,,\u0001auth=Basic abc\u0001\u0001', 'another scheme'],
    ['n,,\u0001auth=Bearer abc\u0001', 'no end'],
    ['n,,\u0001\u0001', 'no token'],
  ])('refuses a message with %j', async (message) => {
    expect(await mechanism().begin().step(Buffer.from(message))).toMatchObject({ kind: 'failure' });
  });

  it('reads the keys anew for a token with a new key, and keeps them when the file is gone', async () => {
    const rotating = mechanism();
    const old = bearer(await sign({}));
    expect((await rotating.begin().step(old)).kind).toBe('success');
    files.write('keys.json', await keySet(others.publicKey, 'k2'));
    const fresh = bearer(await sign({}, others.privateKey, 'k2'));
    // Right after the last look nobody makes the broker look again.
    expect((await rotating.begin().step(fresh)).kind).toBe('challenge');
    await clock.advance(10_000);
    expect((await rotating.begin().step(fresh)).kind).toBe('success');
    files.write('keys.json', 'half a fi');
    await clock.advance(60_000);
    expect((await rotating.begin().step(fresh)).kind).toBe('success');
  });
});

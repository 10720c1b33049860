// SASL over sockets, by a client that sends what no good client would: frames out of turn, too large, too late, bare
// tokens of old clients, pipelined ones; users of the KIP-554 APIs; nothing secret in logs and answers.
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Logger } from '../../base/log.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { metadataApi } from '../../protocol/messages/03-metadata.ts';
import { saslHandshakeApi } from '../../protocol/messages/17-sasl-handshake.ts';
import { apiVersionsApi } from '../../protocol/messages/18-api-versions.ts';
import { describeConfigsApi } from '../../protocol/messages/32-describe-configs.ts';
import { saslAuthenticateApi } from '../../protocol/messages/36-sasl-authenticate.ts';
import { describeUserScramCredentialsApi } from '../../protocol/messages/50-describe-user-scram-credentials.ts';
import { alterUserScramCredentialsApi } from '../../protocol/messages/51-alter-user-scram-credentials.ts';
import { RawClient } from '../testing/raw-client.ts';
import { firstMessage, lastMessage } from '../testing/scram-client.ts';
import {
  type SecureBroker,
  startSecureBroker,
  type TestFiles,
  testFiles,
} from '../testing/secure-broker.ts';
import { saltPassword } from './scram-keys.ts';

let test: SecureBroker;
let files: TestFiles | undefined;
const clients: RawClient[] = [];
const logged: string[] = [];

/** Writes everything down, debug too. */
const logger: Logger = {
  debug: (facts, message) => void logged.push(JSON.stringify([facts, message])),
  info: (facts, message) => void logged.push(JSON.stringify([facts, message])),
  warn: (facts, message) => void logged.push(JSON.stringify([facts, message])),
  error: (facts, message) => void logged.push(JSON.stringify([facts, message])),
  child: () => logger,
};

async function start(given: Readonly<Record<string, string>> = {}): Promise<void> {
  files = testFiles();
  test = await startSecureBroker(
    {
      listeners: 'SASL_PLAINTEXT://127.0.0.1:0',
      'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
      'sasl.users.location': files.write('users', '# the first\nalice=w0nderland\n\n'),
      'connection.failed.authentication.delay.ms': '1',
      ...given,
    },
    { logger },
  );
}

async function client(): Promise<RawClient> {
  const connected = await RawClient.connect(test.portOf('SASL_PLAINTEXT'));
  clients.push(connected);
  return connected;
}

afterEach(async () => {
  for (const one of clients.splice(0)) one.close();
  await test.stop();
  files?.remove();
  logged.length = 0;
});

const handshake = (one: RawClient, mechanism: string) =>
  one.call(saslHandshakeApi, 1, { mechanism });
const authenticate = (one: RawClient, token: string | Uint8Array) =>
  one.call(saslAuthenticateApi, 2, { authBytes: Buffer.from(token) });
const ALICE = '\0alice\0w0nderland';
const topics = {
  topics: [],
  allowAutoTopicCreation: false,
  includeTopicAuthorizedOperations: false,
};

async function known(token = ALICE): Promise<RawClient> {
  const one = await client();
  await handshake(one, 'PLAIN');
  expect((await authenticate(one, token)).errorCode).toBe(0);
  return one;
}

describe('a SASL listener', () => {
  it('serves a client that authenticated', async () => {
    await start();
    const one = await known();
    expect((await one.call(metadataApi, 12, metadata())).errorCode).toBe(0);
  });

  it.each([1, 0])(
    'keeps the order of what is sent before answers (handshake v%d pipelined)',
    async (version) => {
      await start();
      const one = await client();
      one.send(apiVersionsApi, 0, { clientSoftwareName: '', clientSoftwareVersion: '' });
      one.send(saslHandshakeApi, version, { mechanism: 'PLAIN' });
      if (version === 1) one.send(saslAuthenticateApi, 2, { authBytes: Buffer.from(ALICE) });
      else one.socket.write(bare(ALICE));
      one.send(metadataApi, 12, metadata());
      expect((await one.receive(apiVersionsApi, 0)).response.errorCode).toBe(0);
      expect((await one.receive(saslHandshakeApi, version)).response.errorCode).toBe(0);
      if (version === 1)
        expect((await one.receive(saslAuthenticateApi, 2)).response.errorCode).toBe(0);
      else expect(await one.frame()).toEqual(Buffer.alloc(0));
      expect((await one.receive(metadataApi, 12)).response.errorCode).toBe(0);
    },
  );

  it('takes bare tokens of old clients, and closes without a word on a wrong one', async () => {
    await start();
    const scram = { mechanism: 'SCRAM-SHA-256', user: 'alice', password: 'w0nderland' } as const;
    for (const password of [scram.password, 'wrong']) {
      const one = await client();
      await one.call(saslHandshakeApi, 0, { mechanism: scram.mechanism });
      one.socket.write(bare(firstMessage(scram)));
      const { message, expected } = lastMessage({ ...scram, password }, (await one.frame())!);
      one.socket.write(bare(message));
      const last = await one.frame();
      expect(last?.toString()).toBe(password === 'wrong' ? undefined : expected);
    }
  });

  it('closes when something is asked first', async () => {
    await start();
    const one = await client();
    one.send(metadataApi, 12, metadata());
    expect(await one.frame()).toBeUndefined();
  });

  it('names the mechanisms to who asks for another, then closes', async () => {
    await start();
    const one = await client();
    const reply = await handshake(one, 'GSSAPI');
    expect(reply.errorCode).toBe(ErrorCode.UNSUPPORTED_SASL_MECHANISM);
    expect(reply.mechanisms).toEqual(['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512']);
    await one.closed;
  });

  it('does not let a client fall back to a weaker mechanism halfway', async () => {
    await start();
    const one = await client();
    await handshake(one, 'SCRAM-SHA-512');
    const reply = await handshake(one, 'PLAIN');
    expect(reply.errorCode).toBe(ErrorCode.ILLEGAL_SASL_STATE);
    await one.closed;
  });

  it('answers a wrong password once, then closes; what was sent after it is not looked at', async () => {
    await start();
    const one = await client();
    await handshake(one, 'PLAIN');
    one.send(saslAuthenticateApi, 2, { authBytes: Buffer.from('\0alice\0wrong') });
    one.send(saslAuthenticateApi, 2, { authBytes: Buffer.from(ALICE) });
    one.send(metadataApi, 12, metadata());
    const { response } = await one.receive(saslAuthenticateApi, 2);
    expect(response.errorCode).toBe(ErrorCode.SASL_AUTHENTICATION_FAILED);
    expect(response.errorMessage).toBe('Invalid username or password');
    expect(await one.frame()).toBeUndefined();
  });

  it('refuses a large frame from a stranger, and takes it from a client that it knows', async () => {
    await start({ 'sasl.server.max.receive.size': '2000' });
    const stranger = await client();
    await handshake(stranger, 'PLAIN');
    stranger.socket.write(bare(Buffer.alloc(2_001)).subarray(0, 100));
    expect(await stranger.frame()).toBeUndefined();
    const one = await known();
    const names = Array.from({ length: 200 }, (_, n) => `a-topic-with-a-long-name-${n}`);
    expect((await one.call(metadataApi, 12, metadata(names))).topics).toHaveLength(200);
  });

  it('closes on who takes too long', async () => {
    await start({ 'connection.authentication.timeout.ms': '100' });
    const slow = await client();
    await handshake(slow, 'PLAIN');
    const silent = connect(test.portOf('SASL_PLAINTEXT'), '127.0.0.1');
    silent.resume();
    await Promise.all([slow.closed, new Promise((resolve) => silent.once('close', resolve))]);
  });

  it('ends a session after its time, unless it is renewed', async () => {
    await start({ 'connections.max.reauth.ms': '1200' });
    const one = await client();
    await handshake(one, 'PLAIN');
    const { sessionLifetimeMs } = await authenticate(one, ALICE);
    expect(sessionLifetimeMs).toBe(1_200);
    const until = async (done: () => Promise<boolean>) =>
      expect.poll(done, { interval: 50, timeout: 5_000 }).toBe(true);
    // Renewed as soon as it may be.
    await until(async () => (await handshake(one, 'PLAIN')).errorCode === 0);
    expect((await authenticate(one, ALICE)).errorCode).toBe(0);
    await until(async () => {
      one.send(metadataApi, 12, metadata());
      return (await one.frame()) === undefined;
    });
    expect(logged.join('\n')).toContain('did not authenticate anew in time');
  });
});

describe('users by API (KIP-554)', () => {
  const upsertion = async (name: string, password: string, options: object = {}) => {
    const salt = Buffer.from('0123456789abcdef');
    const iterations = 4_096;
    const mechanism = 'SCRAM-SHA-256';
    const saltedPassword = await saltPassword(password, { mechanism, salt, iterations });
    return { name, mechanism: 1, iterations, salt, saltedPassword, ...options };
  };

  it('come, change, are shown without secrets, and go', async () => {
    await start();
    const one = await known();
    const alter = (upsertions: object[], deletions: object[] = []) =>
      one.call(alterUserScramCredentialsApi, 0, { upsertions, deletions } as never);
    const [made] = (await alter([await upsertion('bob', 'builder')])).results;
    expect(made).toEqual({ user: 'bob', errorCode: 0, errorMessage: null });
    await known('\0bob\0builder');
    const shown = await one.call(describeUserScramCredentialsApi, 0, { users: null });
    expect(shown.results).toEqual([
      {
        user: 'bob',
        errorCode: 0,
        errorMessage: null,
        credentialInfos: [{ mechanism: 1, iterations: 4_096 }],
      },
    ]);
    await alter([await upsertion('bob', 'changed')]);
    const old = await client();
    await handshake(old, 'PLAIN');
    expect((await authenticate(old, '\0bob\0builder')).errorCode).not.toBe(0);
    expect((await alter([], [{ name: 'bob', mechanism: 1 }])).results[0]!.errorCode).toBe(0);
    const gone = await one.call(describeUserScramCredentialsApi, 0, { users: [{ name: 'bob' }] });
    expect(gone.results[0]!.errorCode).toBe(ErrorCode.RESOURCE_NOT_FOUND);
  });

  it('refuses what is wrong, user by user, and keeps nothing of it', async () => {
    await start();
    const one = await known();
    const good = await upsertion('good', 'x');
    const reply = await one.call(alterUserScramCredentialsApi, 0, {
      upsertions: [
        good,
        await upsertion('', 'x'),
        await upsertion('few', 'x', { iterations: 4_095 }),
        await upsertion('many', 'x', { iterations: 16_385 }),
        await upsertion('strange', 'x', { mechanism: 9 }),
        await upsertion('twice', 'x'),
        await upsertion('twice', 'y', { mechanism: 2 }),
      ],
      deletions: [{ name: 'nobody', mechanism: 1 }],
    });
    const codes = Object.fromEntries(reply.results.map(({ user, errorCode }) => [user, errorCode]));
    expect(codes).toEqual({
      good: 0,
      '': ErrorCode.UNACCEPTABLE_CREDENTIAL,
      few: ErrorCode.UNACCEPTABLE_CREDENTIAL,
      many: ErrorCode.UNACCEPTABLE_CREDENTIAL,
      strange: ErrorCode.UNSUPPORTED_SASL_MECHANISM,
      twice: ErrorCode.DUPLICATE_RESOURCE,
      nobody: ErrorCode.RESOURCE_NOT_FOUND,
    });
    const { results } = await one.call(describeUserScramCredentialsApi, 0, { users: null });
    expect(results.map(({ user }) => user)).toEqual(['good']);
    const twice = await one.call(describeUserScramCredentialsApi, 0, {
      users: [{ name: 'good' }, { name: 'good' }],
    });
    expect(twice.results[0]!.errorCode).toBe(ErrorCode.DUPLICATE_RESOURCE);
  });

  it('last beyond a restart, and win over those of the configuration', async () => {
    const metadata = openSqliteMetadata(':memory:');
    const settings = {
      listeners: 'SASL_PLAINTEXT://127.0.0.1:0',
      'sasl.enabled.mechanisms': 'PLAIN',
    };
    test = await startSecureBroker(settings, { metadata });
    const { users } = test.security;
    await users.alter(
      [await users.salted({ user: 'alice', mechanism: 'SCRAM-SHA-512' }, 'stored')],
      [],
    );
    await test.stop();
    files = testFiles();
    const location = files.write('users', 'alice=configured\n');
    test = await startSecureBroker({ ...settings, 'sasl.users.location': location }, { metadata });
    await known('\0alice\0stored');
    const one = await client();
    await handshake(one, 'PLAIN');
    expect((await authenticate(one, '\0alice\0configured')).errorCode).not.toBe(0);
  });
});

it('keeps secrets out of logs and answers', async () => {
  await start();
  const one = await known();
  for (const token of [
    '\0alice\0w0nderlands',
    '\0w0nderland\0w0nderland',
    'w0nderland',
    '\0alice\0w0nderland\0x',
  ]) {
    const wrong = await client();
    await handshake(wrong, 'PLAIN');
    const answer = await authenticate(wrong, token);
    expect(JSON.stringify(answer)).not.toContain('w0nderland');
  }
  const { results } = await one.call(describeConfigsApi, 4, {
    resources: [{ resourceType: 4, resourceName: '0', configurationKeys: null }],
    includeSynonyms: true,
    includeDocumentation: false,
  });
  expect(JSON.stringify(results)).not.toContain('w0nderland');
  expect(logged.length).toBeGreaterThan(3);
  expect(logged.join('\n')).not.toContain('w0nderland');
});

function metadata(names: readonly string[] = []) {
  const asked = names.map((name) => ({ name, topicId: '00000000-0000-0000-0000-000000000000' }));
  return { ...topics, topics: asked, includeClusterAuthorizedOperations: false };
}

/** A frame without header. */
function bare(token: string | Uint8Array): Buffer {
  const bytes = Buffer.from(token);
  const size = Buffer.alloc(4);
  size.writeInt32BE(bytes.length);
  return Buffer.concat([size, bytes]);
}

// Unmodified clients (kafkajs, @platformatic/kafka) against secured listeners: every mechanism, TLS, client
// certificates, what a user may and may not do, certificates replaced while running.
import { generateKeyPairSync } from 'node:crypto';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { Admin as PlatformaticAdmin } from '@platformatic/kafka';
import { exportJWK, SignJWT } from 'jose';
import kafkajs, { type Admin, type KafkaConfig, type SASLOptions } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TEST_CERTIFICATE } from '../testing/certificate.ts';
import {
  CLIENT_AUTHORITY,
  CLIENT_CERTIFICATE,
  CLIENT_KEY,
  OTHER_CERTIFICATE,
  OTHER_KEY,
} from '../testing/client-certificates.ts';
import {
  type SecureBroker,
  startSecureBroker,
  TEST_KEYSTORE,
  type TestFiles,
  testFiles,
} from '../testing/secure-broker.ts';

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs;

let test: SecureBroker;
let files: TestFiles;
let token: string;

beforeAll(async () => {
  files = testFiles();
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwks = { keys: [{ ...(await exportJWK(keys.publicKey)), kid: 'k', alg: 'ES256' }] };
  token = await new SignJWT({ sub: 'olga' })
    .setProtectedHeader({ alg: 'ES256', kid: 'k' })
    .setIssuer('https://issuer')
    .setExpirationTime('1h')
    .sign(keys.privateKey);
  test = await startSecureBroker({
    listeners: ['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL']
      .map((name) => `${name}://127.0.0.1:0`)
      .join(','),
    'ssl.keystore.location': files.write('server.pem', TEST_KEYSTORE),
    'ssl.truststore.location': files.write('ca.pem', CLIENT_AUTHORITY),
    'ssl.client.auth': 'requested',
    'ssl.principal.mapping.rules': 'RULE:^CN=([^,]+),OU=Tests,.*$/$1/U,DEFAULT',
    'sasl.enabled.mechanisms': 'SCRAM-SHA-256,SCRAM-SHA-512',
    'listener.name.sasl_ssl.sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,OAUTHBEARER',
    'sasl.users.location': files.write('users', 'root=tops3cret\nalice=wonder\n'),
    'sasl.oauthbearer.jwks.endpoint.url': `file://${files.write('jwks.json', JSON.stringify(jwks))}`,
    'sasl.oauthbearer.expected.issuer': 'https://issuer',
    'authorizer.class.name': 'StandardAuthorizer',
    'super.users': 'User:root',
    'connection.failed.authentication.delay.ms': '1',
  });
});

afterAll(async () => {
  await test.stop();
  files.remove();
});

const ssl: ConnectionOptions = { ca: TEST_CERTIFICATE, servername: 'localhost' };

function kafka(listener: string, options: Partial<KafkaConfig> = {}) {
  return new kafkajs.Kafka({
    brokers: [`127.0.0.1:${test.portOf(listener)}`],
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { retries: 0 },
    ...(listener.endsWith('SSL') ? { ssl } : {}),
    ...options,
  });
}

async function asAdmin<T>(
  listener: string,
  options: Partial<KafkaConfig>,
  work: (admin: Admin) => Promise<T>,
): Promise<T> {
  const admin = kafka(listener, options).admin();
  try {
    await admin.connect();
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

const root: SASLOptions = { mechanism: 'scram-sha-256', username: 'root', password: 'tops3cret' };
const alice = (mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512', password = 'wonder') =>
  ({ mechanism, username: 'alice', password }) as SASLOptions;
const asRoot = <T>(work: (admin: Admin) => Promise<T>) =>
  asAdmin('SASL_PLAINTEXT', { sasl: root }, work);

describe('kafkajs', () => {
  it.each([
    ['SASL_PLAINTEXT', alice('scram-sha-256')],
    ['SASL_PLAINTEXT', alice('scram-sha-512')],
    ['SASL_SSL', alice('scram-sha-256')],
    ['SASL_SSL', alice('plain')],
  ] as const)('authenticates on %s by %j', async (listener, sasl) => {
    const { brokers } = await asAdmin(listener, { sasl }, (admin) => admin.describeCluster());
    expect(brokers).toHaveLength(1);
    expect(brokers[0]!.port, 'the address of the listener it came by').toBe(test.portOf(listener));
  });

  it('authenticates by a signed token', async () => {
    const sasl: SASLOptions = {
      mechanism: 'oauthbearer',
      oauthBearerProvider: async () => ({ value: token }),
    };
    await asAdmin('SASL_SSL', { sasl }, (admin) => admin.describeCluster());
    const forged: SASLOptions = {
      mechanism: 'oauthbearer',
      oauthBearerProvider: async () => ({ value: `${token.slice(0, -8)}AAAAAAAA` }),
    };
    const attempt = asAdmin('SASL_SSL', { sasl: forged }, (admin) => admin.describeCluster());
    // kafkajs takes the challenge for a yes and goes on; its next request then finds a closed door.
    await expect(attempt).rejects.toThrow();
  });

  it.each([
    ['SASL_PLAINTEXT', alice('scram-sha-256', 'wrong')],
    ['SASL_SSL', alice('plain', 'wrong')],
    ['SASL_PLAINTEXT', alice('plain')],
  ] as const)('is refused on %s by %j', async (listener, sasl) => {
    const attempt = asAdmin(listener, { sasl }, (admin) => admin.describeCluster());
    await expect(attempt).rejects.toThrow(/SASL/);
  });

  it('is closed out when it asks anything without authenticating', async () => {
    const attempt = asAdmin('SASL_PLAINTEXT', {}, (admin) => admin.describeCluster());
    await expect(attempt).rejects.toThrow();
  });

  it('sees and does what ACLs let it, from the reply that made them on', async () => {
    await asRoot((admin) =>
      admin.createTopics({ topics: [{ topic: 'open' }, { topic: 'closed' }] }),
    );
    const sasl = alice('scram-sha-256');
    const names = () => asAdmin('SASL_PLAINTEXT', { sasl }, (admin) => admin.listTopics());
    expect(await names()).toEqual([]);
    const grant = {
      principal: 'User:alice',
      host: '*',
      operation: AclOperationTypes.ALL,
      permissionType: AclPermissionTypes.ALLOW,
      resourceType: AclResourceTypes.TOPIC,
      resourceName: 'op',
      resourcePatternType: ResourcePatternTypes.PREFIXED,
    };
    await asRoot((admin) => admin.createAcls({ acl: [grant] }));
    expect(await names()).toEqual(['open']);
    const producer = kafka('SASL_PLAINTEXT', { sasl }).producer();
    await producer.connect();
    await producer.send({ topic: 'open', messages: [{ value: 'v' }] });
    const denied = producer.send({ topic: 'closed', messages: [{ value: 'v' }] });
    await expect(denied).rejects.toThrow(/Topic authorization failed/);
    await producer.disconnect();
    const about = { ...grant, principal: 'User:alice' };
    const { resources } = await asRoot((admin) => admin.describeAcls(about));
    expect(resources).toMatchObject([{ resourceName: 'op', acls: [{ principal: 'User:alice' }] }]);
    const { filterResponses } = await asRoot((admin) => admin.deleteAcls({ filters: [about] }));
    expect(filterResponses[0]!.matchingAcls).toHaveLength(1);
    expect(await names()).toEqual([]);
    const mayNot = asAdmin('SASL_PLAINTEXT', { sasl }, (admin) => admin.describeAcls(about));
    await expect(mayNot).rejects.toMatchObject({ type: 'CLUSTER_AUTHORIZATION_FAILED' });
  });
});

describe('certificates of clients', () => {
  const group = (connection: ConnectionOptions) =>
    asAdmin('SSL', { ssl: { ...ssl, ...connection } }, async (admin) => {
      await admin.describeCluster();
    });

  it('make a user by the rules, and nobody without one', async () => {
    const principals: string[] = [];
    const { authorizer } = test.broker.services;
    const allows = authorizer.allows.bind(authorizer);
    authorizer.allows = (who, operation, type, name) => {
      principals.push(who.principal.name);
      return allows(who, operation, type, name);
    };
    await asAdmin('SSL', {}, (admin) => admin.listTopics());
    expect(new Set(principals.splice(0))).toEqual(new Set(['ANONYMOUS']));
    const own = { ...ssl, key: CLIENT_KEY, cert: CLIENT_CERTIFICATE };
    await asAdmin('SSL', { ssl: own }, (admin) => admin.listTopics());
    expect(new Set(principals)).toEqual(new Set(['CAROL']));
    authorizer.allows = allows;
  });

  it('are refused when nobody trusted signed them', async () => {
    await expect(group({ key: OTHER_KEY, cert: OTHER_CERTIFICATE })).rejects.toThrow();
  });
});

it('@platformatic/kafka authenticates by SCRAM', async () => {
  const admin = new PlatformaticAdmin({
    clientId: 'p',
    bootstrapBrokers: [`127.0.0.1:${test.portOf('SASL_PLAINTEXT')}`],
    sasl: { mechanism: 'SCRAM-SHA-512', username: 'root', password: 'tops3cret' },
    retries: 0,
  });
  await admin.createTopics({ topics: ['platformatic'] });
  expect(await admin.listTopics()).toContain('platformatic');
  await admin.close();
});

it('replaces a certificate while running, and keeps it when the new one is broken', async () => {
  const seen = () =>
    new Promise<string>((resolve, reject) => {
      const options = { host: '127.0.0.1', port: test.portOf('SSL'), rejectUnauthorized: false };
      const socket = connectTls(options, () => {
        resolve(socket.getPeerX509Certificate()!.toString().trim());
        socket.destroy();
      });
      socket.on('error', reject);
    });
  const { tls } = test.security.listeners.get('SSL')!;
  expect(await seen()).toBe(TEST_CERTIFICATE);
  expect(tls!.reload()).toBe(false);
  files.write('server.pem', `${OTHER_KEY}\n${OTHER_CERTIFICATE}\n`);
  expect(tls!.reload()).toBe(true);
  expect(await seen()).toBe(OTHER_CERTIFICATE);
  files.write('server.pem', `${OTHER_KEY}\n${TEST_CERTIFICATE}\n`);
  expect(() => tls!.reload()).toThrow(/different pairs/);
  files.write('server.pem', OTHER_CERTIFICATE);
  expect(() => tls!.reload()).toThrow(/ssl.keystore.key.location/);
  expect(await seen()).toBe(OTHER_CERTIFICATE);
});

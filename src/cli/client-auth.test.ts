// What commands are told about TLS and logins, and the wire client that uses it against a secured broker.
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TEST_CERTIFICATE } from '../broker/testing/certificate.ts';
import {
  type SecureBroker,
  startSecureBroker,
  TEST_KEYSTORE,
  type TestFiles,
  testFiles,
} from '../broker/testing/secure-broker.ts';
import { metadataApi } from '../protocol/index.ts';
import { addAuthOptions } from './client-auth.ts';
import { withWire } from './wire-client.ts';

let test: SecureBroker;
let files: TestFiles;

beforeAll(async () => {
  files = testFiles();
  test = await startSecureBroker({
    listeners: 'SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0',
    'ssl.keystore.location': files.write('server.pem', TEST_KEYSTORE),
    'sasl.users.location': files.write('users', 'a=b,c=secret\nalice=wonder\n'),
    'listener.name.sasl_ssl.sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-512',
    'connection.failed.authentication.delay.ms': '1',
  });
  files.write('ca.pem', TEST_CERTIFICATE);
});

afterAll(async () => {
  await test.stop();
  files.remove();
});

/** Runs a command with `args`, which asks the listener for its cluster's id. */
async function run(listener: string, args: readonly string[]): Promise<string | null> {
  const program = new Command().exitOverride();
  let answer: string | null = null;
  const server = `localhost:${test.portOf(listener)}`;
  program
    .command('ask')
    .option('--server <host:port>', '', server)
    .action(async (options: { readonly server: string }) => {
      answer = await withWire(options.server, async (client) => {
        const { clusterId } = await client.ask(metadataApi, { topics: [] });
        return clusterId;
      });
    });
  addAuthOptions(program);
  await program.parseAsync(['ask', ...args], { from: 'user' });
  return answer;
}

const alice = ['--user', 'alice', '--password', 'wonder'];

describe('a command', () => {
  it.each([
    ['SASL_PLAINTEXT', alice],
    ['SASL_PLAINTEXT', [...alice, '--mechanism', 'SCRAM-SHA-512']],
    ['SASL_SSL', [...alice, '--mechanism', 'SCRAM-SHA-512', '--ca', 'ca.pem']],
    ['SASL_SSL', [...alice, '--mechanism', 'PLAIN', '--ca', 'ca.pem']],
  ])('logs in on %s with %j', async (listener, args) => {
    const given = args.map((arg) =>
      arg === 'ca.pem' ? files.write('ca.pem', TEST_CERTIFICATE) : arg,
    );
    expect(await run(listener, given)).toBe('test-cluster');
  });

  it.each([
    [
      'a wrong password',
      ['--user', 'alice', '--password', 'x'],
      /user "alice": Authentication failed/,
    ],
    [
      'a mechanism that is off',
      [...alice, '--mechanism', 'PLAIN'],
      /not enabled \(it offers SCRAM/,
    ],
    ['no password', ['--user', 'alice'], /FLOE_PASSWORD/],
    ['no user', ['--password', 'x'], /--password without --user/],
    ['a file that is not there', [...alice, '--ca', '/nowhere/ca.pem'], /--ca \/nowhere\/ca.pem/],
    ['no login', [], /closed the connection/],
  ])('says what is wrong with %s', async (_what, args, message) => {
    await expect(run('SASL_PLAINTEXT', args)).rejects.toThrow(message);
  });
});

// floe users create | list | delete: users with salted passwords (KIP-554), through the Kafka API.
import { Command } from 'commander';
import { FloeError } from '../../base/error.ts';
import { systemPrng } from '../../base/prng.ts';
import { MIN_ITERATIONS, SCRAM, SCRAM_MECHANISMS, saltPassword } from '../../broker/auth/index.ts';
import {
  alterUserScramCredentialsApi,
  describeUserScramCredentialsApi,
} from '../../protocol/index.ts';
import { KAFKA_SERVER } from '../kafka-client.ts';
import { throwKafkaError } from '../kafka-error.ts';
import { textTable } from '../text-table.ts';
import { type WireClient, withWire } from '../wire-client.ts';

interface ServerOption {
  readonly server: string;
}

const SALT_BYTES = 24;

export function usersCommand(): Command {
  const command = new Command('users').description('users with passwords: create, list, delete');
  const server = ['--server <host:port>', 'the Kafka address', KAFKA_SERVER] as const;
  command
    .command('create <name>')
    .description('a user, or a new password of one; FLOE_NEW_PASSWORD holds it')
    .option('--new-password <text>', 'the password; better in the environment than here')
    .option(...server)
    .action(createUser);
  command
    .command('list')
    .description('users and their mechanisms')
    .option(...server)
    .action(listUsers);
  command
    .command('delete <name>')
    .description('a user, with all its passwords')
    .option(...server)
    .action(deleteUser);
  return command;
}

async function createUser(
  name: string,
  options: ServerOption & { readonly newPassword?: string },
): Promise<void> {
  const password = options.newPassword ?? process.env['FLOE_NEW_PASSWORD'] ?? '';
  if (password === '') {
    throw new FloeError(
      'invalid',
      'there is no password: set FLOE_NEW_PASSWORD, or --new-password',
    );
  }
  await withWire(options.server, async (client) => {
    // One request may change a user once.
    for (const mechanism of SCRAM_MECHANISMS) {
      const salt = Buffer.from(systemPrng.bytes(SALT_BYTES));
      const rounds = { mechanism, salt, iterations: MIN_ITERATIONS };
      const saltedPassword = Buffer.from(await saltPassword(password, rounds));
      const code = SCRAM[mechanism].code;
      await alter(client, {
        upsertions: [{ name, mechanism: code, iterations: MIN_ITERATIONS, salt, saltedPassword }],
      });
    }
  });
  process.stdout.write(`user ${name} has its password\n`);
}

async function listUsers({ server }: ServerOption): Promise<void> {
  const users = await withWire(server, (client) => describe(client, null));
  const rows = users.map(({ user, credentialInfos }) => [
    user,
    credentialInfos.map(({ mechanism }) => nameOf(mechanism)).join(', '),
  ]);
  process.stdout.write(textTable(['user', 'mechanisms'], rows));
}

async function deleteUser(name: string, { server }: ServerOption): Promise<void> {
  await withWire(server, async (client) => {
    const [user] = await describe(client, [{ name }]);
    throwKafkaError(`user "${name}"`, user!.errorCode, user!.errorMessage);
    for (const { mechanism } of user!.credentialInfos) {
      await alter(client, { deletions: [{ name, mechanism }] });
    }
  });
  process.stdout.write(`deleted user ${name}\n`);
}

async function describe(client: WireClient, users: { readonly name: string }[] | null) {
  const reply = await client.ask(describeUserScramCredentialsApi, { users });
  throwKafkaError('users', reply.errorCode, reply.errorMessage);
  return reply.results;
}

async function alter(
  client: WireClient,
  request: Parameters<typeof client.ask<typeof alterUserScramCredentialsApi>>[1],
): Promise<void> {
  const { results } = await client.ask(alterUserScramCredentialsApi, request);
  for (const { user, errorCode, errorMessage } of results) {
    throwKafkaError(`user "${user}"`, errorCode, errorMessage);
  }
}

const nameOf = (code: number) =>
  SCRAM_MECHANISMS.find((mechanism) => SCRAM[mechanism].code === code) ?? String(code);

// The `floe` command: parses arguments, runs one command, turns a failure into one clear line and exit code 1.
// Only the command that was asked for is loaded, so that `serve` is ready soon and `--help` answers at once.
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { Command } from 'commander';
import { FloeError, isFloeError } from '../base/error.ts';
import { freeThreadLimits, markWhenHalfFull } from '../base/thread-memory.ts';
import { addAuthOptions } from './client-auth.ts';
import { stayingAlive } from './stay-alive.ts';

// Compiled code of the sources and their dependencies is kept: a start then takes a fraction of the time. Threads
// learn of it by the environment; without it each of them loads its own compiler of TypeScript (25 MB).
const compiled = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'floe');
enableCompileCache(compiled);
process.env['NODE_COMPILE_CACHE'] ??= compiled;
freeThreadLimits();
markWhenHalfFull();

/** Name → loader, in the order of `--help`. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./commands/serve.ts')).serveCommand(),
  topics: async () => (await import('./commands/topics.ts')).topicsCommand(),
  produce: async () => (await import('./commands/produce.ts')).produceCommand(),
  consume: async () => (await import('./commands/consume.ts')).consumeCommand(),
  groups: async () => (await import('./commands/groups.ts')).groupsCommand(),
  tables: async () => (await import('./commands/tables.ts')).tablesCommand(),
  sql: async () => (await import('./commands/sql.ts')).sqlCommand(),
  cluster: async () => (await import('./commands/cluster.ts')).clusterCommand(),
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand(),
  fsck: async () => (await import('./commands/fsck.ts')).fsckCommand(),
  log: async () => (await import('./commands/log.ts')).logCommand(),
  backup: async () => (await import('./commands/backup.ts')).backupCommand(),
  restore: async () => (await import('./commands/backup.ts')).restoreCommand(),
  migrate: async () => (await import('./commands/migrate.ts')).migrateCommand(),
  users: async () => (await import('./commands/users.ts')).usersCommand(),
  acls: async () => (await import('./commands/acls.ts')).aclsCommand(),
  demo: async () => (await import('./commands/demo.ts')).demoCommand(),
};

async function main(): Promise<void> {
  const program = new Command('floe')
    .description('A Kafka-compatible broker whose topics are Apache Iceberg tables')
    .showHelpAfterError('(add --help for the options)');
  const asked = COMMANDS[process.argv[2] ?? ''];
  for (const load of asked === undefined ? Object.values(COMMANDS) : [asked])
    program.addCommand(await load());
  addAuthOptions(program);
  await program.parseAsync();
}

// `floe tables list | head`: the reader went away, which is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

try {
  await stayingAlive(main);
} catch (caught) {
  const error = FloeError.from(caught);
  process.stderr.write(`floe: ${error.message}\n`);
  if (!isFloeError(caught)) process.stderr.write(`${(caught as Error).stack ?? ''}\n`);
  process.exit(1);
}

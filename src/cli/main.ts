// The `floe` command: parses arguments, runs one command, turns a failure into one clear line and exit code 1.
import { Command } from 'commander';
import { FloeError, isFloeError } from '../base/error.ts';
import { consumeCommand } from './commands/consume.ts';
import { demoCommand } from './commands/demo.ts';
import { groupsCommand } from './commands/groups.ts';
import { produceCommand } from './commands/produce.ts';
import { serveCommand } from './commands/serve.ts';
import { sqlCommand } from './commands/sql.ts';
import { tablesCommand } from './commands/tables.ts';
import { topicsCommand } from './commands/topics.ts';

const program = new Command('floe')
  .description('A Kafka-compatible broker whose topics are Apache Iceberg tables')
  .showHelpAfterError('(add --help for the options)')
  .addCommand(serveCommand())
  .addCommand(topicsCommand())
  .addCommand(produceCommand())
  .addCommand(consumeCommand())
  .addCommand(groupsCommand())
  .addCommand(tablesCommand())
  .addCommand(sqlCommand())
  .addCommand(demoCommand());

// `floe tables list | head`: the reader went away, which is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

try {
  await program.parseAsync();
} catch (caught) {
  const error = FloeError.from(caught);
  process.stderr.write(`floe: ${error.message}\n`);
  if (!isFloeError(caught) && process.env['FLOE_DEBUG'] !== undefined) console.error(caught);
  process.exit(1);
}

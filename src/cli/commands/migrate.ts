// floe migrate: from one node's data directory to PostgreSQL and shared storage.
import { Command, Option } from 'commander';
import { FloeError } from '../../base/error.ts';
import { resolveSettings } from '../../base/settings.ts';
import { migrate } from '../migrate/migrate.ts';
import { type ServeFlags, serveOptions } from '../options.ts';
import { serverSettings } from '../settings.ts';
import { collect } from '../store-flags.ts';

interface MigrateFlags extends ServeFlags {
  readonly fromStorage?: string;
  readonly verify: 'sample' | 'all';
  readonly warehouse: 'copy' | 'keep';
}

/** `--verify sample`: one object of so many. */
const SAMPLED_OF = 16;

export function migrateCommand(): Command {
  return new Command('migrate')
    .description('move the data directory of a stopped node to PostgreSQL and shared storage')
    .option('--data-dir <dir>', 'of the node that is moved (default: ./floe-data)')
    .option(
      '--from-storage <uri>',
      'its --storage, if it had one (default: a folder of the data dir)',
    )
    .option('--storage <uri>', 'where it goes: s3://bucket/prefix or file:///folder, empty')
    .option('--metadata <url>', 'where it goes: postgres://user:password@host/database, empty')
    .option('--s3-endpoint <url>', 'of the bucket, when it is not at AWS')
    .addOption(
      new Option('--verify <how>', 'objects whose batches are checked by CRC, one of 16 or all')
        .choices(['sample', 'all'])
        .default('sample'),
    )
    .addOption(
      new Option(
        '--warehouse <what>',
        'files of tables: copy, with their locations rewritten; keep, where another catalog has them',
      )
        .choices(['copy', 'keep'])
        .default('copy'),
    )
    .option('--config <file.yaml>', 'options and settings by name')
    .option('--set <key=value>', 'a setting; may be repeated', collect, [])
    .addHelpText(
      'after',
      `
Stop the node first: its data directory is locked while it runs. What broke off goes on with the next
run; a run after the last one proves once more that both are equal. Lengths and checksums of all objects,
all rows of the metadata, starts and ends of all partitions and the files and rows of all tables are
compared. Then the directory is marked as moved and served no more; nothing in it is deleted.`,
    )
    .action(run);
}

async function run({ fromStorage, verify, warehouse, ...flags }: MigrateFlags): Promise<void> {
  const { dataDir, storage, metadata, settings } = serveOptions(flags);
  if (storage === undefined || metadata === undefined) {
    throw new FloeError(
      'invalid',
      'say where it goes: --metadata postgres://user:password@host/database and --storage s3://bucket/prefix',
    );
  }
  await migrate({
    dataDir,
    fromStorage,
    storage,
    metadata,
    settings: resolveSettings(serverSettings, settings),
    checkOneOf: verify === 'all' ? 1 : SAMPLED_OF,
    warehouse,
    say: (line) => process.stdout.write(`${line}\n`),
  });
}

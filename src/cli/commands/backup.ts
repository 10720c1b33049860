// floe backup and floe restore: the metadata, as of one moment, and back.
import { Command } from 'commander';
import { FloeError } from '../../base/error.ts';
import { resolveSettings } from '../../base/settings.ts';
import { type BackupOptions, backup, noteRestored, restore } from '../backup/backup.ts';
import { isWhole, type Proof, proofText } from '../backup/prove.ts';
import { type ServeFlags, serveOptions } from '../options.ts';
import { serverSettings } from '../settings.ts';
import { withSettings, withStores } from '../store-flags.ts';

interface Flags extends ServeFlags {
  readonly inPlace?: boolean;
}

export function backupCommand(): Command {
  return withFlags(new Command('backup'))
    .description('write all metadata, as of one moment, to a folder or bucket; brokers may run')
    .argument('<place>', 'an empty folder, file:///folder or s3://bucket/prefix')
    .addHelpText(
      'after',
      '\nThe log and the files of tables stay where they are: keep log.delete.grace.ms longer than the time\nbetween backups, so that what the last one refers to is still there.',
    )
    .action(take);
}

export function restoreCommand(): Command {
  return withFlags(new Command('restore'))
    .description('bring metadata back from a backup into an empty database or data directory')
    .argument('[place]', 'of the backup: a folder, file:///folder or s3://bucket/prefix')
    .option(
      '--in-place',
      "no backup is read: the database was recovered by PostgreSQL's own means",
      false,
    )
    .addHelpText(
      'after',
      '\nStop all brokers first. Whether every object that the metadata refers to is there is proved afterwards\n(exit code 1 if not). Until floe doctor --confirm nothing of the log is swept or deleted.',
    )
    .action(bringBack);
}

function withFlags(command: Command): Command {
  return withSettings(
    withStores(command, {
      storage: 'of the log: s3://bucket/prefix or file:///folder',
      s3: 'of the buckets, when they are not at AWS',
    }),
  );
}

function optionsOf(place: string, flags: ServeFlags): BackupOptions {
  const { dataDir, storage, metadata, settings } = serveOptions(flags);
  return { place, dataDir, storage, metadata, settings: resolveSettings(serverSettings, settings) };
}

async function take(place: string, flags: Flags): Promise<void> {
  const { clusterId, lastCommit, takenMs, bytes } = await backup(optionsOf(place, flags));
  const at = new Date(takenMs).toISOString();
  process.stdout.write(`cluster ${clusterId} as of commit ${lastCommit}, ${at}: ${bytes} bytes\n`);
}

async function bringBack(place: string | undefined, { inPlace, ...flags }: Flags): Promise<void> {
  const options = optionsOf(place ?? '', flags);
  if ((place === undefined) !== (inPlace === true))
    throw new FloeError('invalid', 'name the place of a backup, or say --in-place');
  if (inPlace === true) {
    if (options.metadata === undefined)
      throw new FloeError('invalid', '--in-place is for a database: name it by --metadata');
    tell(await noteRestored(options));
    return;
  }
  const { clusterId, lastCommit, takenMs, proof } = await restore(options);
  const at = new Date(takenMs).toISOString();
  process.stdout.write(`cluster ${clusterId} is back as of commit ${lastCommit}, ${at}\n`);
  tell(proof);
}

function tell(proof: Proof): void {
  process.stdout.write(proofText(proof));
  if (!isWhole(proof)) process.exitCode = 1;
}

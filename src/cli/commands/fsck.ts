// floe fsck: whether metadata, log and tables agree, and a sample of the log's bytes.
import { Command, InvalidArgumentError, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { systemPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { type Format, formatOption, tellFindings } from '../doctor/tell.ts';
import { fsck } from '../fsck/fsck.ts';
import { type ServeFlags, serveOptions } from '../options.ts';
import { serverSettings } from '../settings.ts';
import { withSettings, withStores } from '../store-flags.ts';

interface FsckFlags extends ServeFlags {
  readonly sample: number;
  readonly topic?: string;
  readonly format: Format;
}

/** A swap of rows or a commit of a table takes less. */
const PAUSE_MS = 1_000;

export function fsckCommand(): Command {
  const command = withStores(new Command('fsck'))
    .description(
      'check that metadata, objects of the log and files of tables agree; exit code 1 if anything is wrong',
    )
    .option('--topic <name>', 'only this topic and its table')
    .addOption(
      new Option('--sample <percent>', "of the log's blocks, whose batches are read and checked")
        .argParser(percent)
        .default(1),
    )
    .addOption(formatOption());
  return withSettings(command)
    .addHelpText(
      'after',
      '\nNothing is written. It may be run while brokers are. --sample 0 reads no bytes of the log, 100 all of them.',
    )
    .action(run);
}

function percent(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (value >= 0 && value <= 100) return value;
  throw new InvalidArgumentError('it is a number from 0 to 100.');
}

async function run({ sample, topic, format, ...flags }: FsckFlags): Promise<void> {
  const { dataDir, storage, metadata, settings } = serveOptions(flags);
  const findings = await fsck({
    dataDir,
    storage,
    metadata,
    settings: resolveSettings(serverSettings, settings),
    samplePercent: sample,
    prng: systemPrng,
    pause: () => systemClock.sleep(PAUSE_MS),
    ...(topic === undefined ? {} : { topic }),
  });
  tellFindings(findings, format);
}

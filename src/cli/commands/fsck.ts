// floe fsck: whether metadata, log and tables agree, and a sample of the log's bytes.
import { Command, InvalidArgumentError, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { systemPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { findingsText } from '../doctor/finding.ts';
import { fsck } from '../fsck/fsck.ts';
import { type ServeFlags, serveOptions } from '../options.ts';
import { serverSettings } from '../settings.ts';

interface FsckFlags extends ServeFlags {
  readonly sample: number;
  readonly topic?: string;
  readonly format: 'table' | 'json';
}

/** A swap of rows or a commit of a table takes less. */
const PAUSE_MS = 1_000;

export function fsckCommand(): Command {
  return new Command('fsck')
    .description(
      'check that metadata, objects of the log and files of tables agree; exit code 1 if anything is wrong',
    )
    .option('--data-dir <dir>', 'of a node alone (default: ./floe-data)')
    .option('--metadata <url>', 'of a cluster: postgres://user:password@host/database')
    .option('--storage <uri>', 'of a cluster: s3://bucket/prefix or file:///folder')
    .option('--s3-endpoint <url>', 'of the bucket, when it is not at AWS')
    .option('--topic <name>', 'only this topic and its table')
    .addOption(
      new Option('--sample <percent>', "of the log's blocks, whose batches are read and checked")
        .argParser(percent)
        .default(1),
    )
    .addOption(
      new Option('--format <format>', 'how to print').choices(['table', 'json']).default('table'),
    )
    .option('--config <file.yaml>', 'options and settings by name')
    .option('--set <key=value>', 'a setting; may be repeated', collect, [])
    .addHelpText(
      'after',
      '\nNothing is written. It may be run while brokers are. --sample 0 reads no bytes of the log, 100 all of them.',
    )
    .action(run);
}

function collect(value: string, values: readonly string[]): readonly string[] {
  return [...values, value];
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
  process.stdout.write(
    format === 'json' ? `${JSON.stringify(findings, null, 2)}\n` : findingsText(findings),
  );
  if (findings.some(({ severity }) => severity === 'wrong')) process.exitCode = 1;
}

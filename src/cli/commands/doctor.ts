// floe doctor: what is wrong with stores, clocks and catalog, and what to do about it.
import { Command, Option } from 'commander';
import { resolveSettings } from '../../base/settings.ts';
import { examine } from '../doctor/doctor.ts';
import { type Finding, findingsText } from '../doctor/finding.ts';
import { checkServer } from '../doctor/server.ts';
import { type ServeFlags, serveOptions } from '../options.ts';
import { serverSettings } from '../settings.ts';

interface DoctorFlags extends ServeFlags {
  readonly server?: string;
  readonly format: 'table' | 'json';
  readonly confirm: boolean;
}

export function doctorCommand(): Command {
  return new Command('doctor')
    .description(
      'check object store, database, clocks and catalog; exit code 1 if anything is wrong',
    )
    .option('--data-dir <dir>', 'of a node alone (default: ./floe-data)')
    .option('--metadata <url>', 'of a cluster: postgres://user:password@host/database')
    .option('--storage <uri>', 'of a cluster: s3://bucket/prefix or file:///folder')
    .option('--s3-endpoint <url>', 'of the bucket, when it is not at AWS')
    .option('--server <host:port>', 'ask a running node for its cluster instead')
    .option('--confirm', 'after a restore: deletion of what nothing refers to may go on', false)
    .addOption(
      new Option('--format <format>', 'how to print').choices(['table', 'json']).default('table'),
    )
    .option('--config <file.yaml>', 'options and settings by name')
    .option('--set <key=value>', 'a setting; may be repeated', collect, [])
    .addHelpText(
      'after',
      '\nOnly probes are written, and deleted at once. It may be run while brokers are.',
    )
    .action(run);
}

function collect(value: string, values: readonly string[]): readonly string[] {
  return [...values, value];
}

async function run({ server, format, confirm, ...flags }: DoctorFlags): Promise<void> {
  const findings = server === undefined ? await local(flags, confirm) : await checkServer(server);
  process.stdout.write(
    format === 'json' ? `${JSON.stringify(findings, null, 2)}\n` : findingsText(findings),
  );
  if (findings.some(({ severity }) => severity === 'wrong')) process.exitCode = 1;
}

function local(flags: ServeFlags, confirm: boolean): Promise<readonly Finding[]> {
  const { dataDir, storage, metadata, settings } = serveOptions(flags);
  return examine({
    dataDir,
    storage,
    metadata,
    settings: resolveSettings(serverSettings, settings),
    confirm,
  });
}

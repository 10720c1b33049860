// floe doctor: what is wrong with stores, clocks and catalog, and what to do about it.
import { Command } from 'commander';
import { resolveSettings } from '../../base/settings.ts';
import { examine } from '../doctor/doctor.ts';
import type { Finding } from '../doctor/finding.ts';
import { checkServer } from '../doctor/server.ts';
import { type Format, formatOption, tellFindings } from '../doctor/tell.ts';
import { type ServeFlags, serveOptions } from '../options.ts';
import { serverSettings } from '../settings.ts';
import { withSettings, withStores } from '../store-flags.ts';

interface DoctorFlags extends ServeFlags {
  readonly server?: string;
  readonly format: Format;
  readonly confirm: boolean;
}

export function doctorCommand(): Command {
  const command = withStores(new Command('doctor'))
    .description(
      'check object store, database, clocks and catalog; exit code 1 if anything is wrong',
    )
    .option('--server <host:port>', 'ask a running node for its cluster instead')
    .option('--confirm', 'after a restore: deletion of what nothing refers to may go on', false)
    .addOption(formatOption());
  return withSettings(command)
    .addHelpText(
      'after',
      '\nOnly probes are written, and deleted at once. It may be run while brokers are.',
    )
    .action(run);
}

async function run({ server, format, confirm, ...flags }: DoctorFlags): Promise<void> {
  const findings = server === undefined ? await local(flags, confirm) : await checkServer(server);
  tellFindings(findings, format);
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

// floe log dump: what lies in one object of the log.
import { once } from 'node:events';
import { Command, Option } from 'commander';
import { resolveSettings } from '../../base/settings.ts';
import { type DumpLine, dump } from '../log-dump/dump.ts';
import { byteCount, findObject } from '../log-dump/find.ts';
import { printed } from '../log-dump/print.ts';
import { type ServeFlags, serveOptions } from '../options.ts';
import { serverSettings } from '../settings.ts';
import { withSettings, withStores } from '../store-flags.ts';

interface DumpFlags extends ServeFlags {
  readonly records: boolean;
  readonly maxBytes: string;
  readonly format: 'table' | 'json';
}

export function logCommand(): Command {
  return new Command('log').description('look into the log').addCommand(dumpCommand());
}

function dumpCommand(): Command {
  const command = new Command('dump')
    .description('print what lies in one object of the log: its batches, or their records')
    .argument('<object>', 'path of a file, or key in the store')
    .option('--records', 'print the records of the batches, too', false)
    .option('--max-bytes <n>', 'of each key, value and header so many are printed', '100');
  withStores(command, { storage: 'where the key lies: s3://bucket/prefix or file:///folder' });
  command.addOption(
    new Option('--format <format>', 'json: one object a line')
      .choices(['table', 'json'])
      .default('table'),
  );
  return withSettings(command)
    .addHelpText(
      'after',
      '\nNothing is written. Batches lie there as they were produced: offsets come from the footer of a sealed object,\nelse from the metadata. Exit code 1 if the object is damaged; a torn end of a write-ahead file is none.',
    )
    .action(run);
}

async function run(
  object: string,
  { records, maxBytes, format, ...flags }: DumpFlags,
): Promise<void> {
  const { dataDir, storage, metadata, settings } = serveOptions(flags);
  const print = { format, maxBytes: byteCount(maxBytes) };
  const metadataNamed = metadata !== undefined || flags.dataDir !== undefined;
  const found = await findObject({
    object,
    dataDir,
    storage,
    metadata,
    metadataNamed,
    settings: resolveSettings(serverSettings, settings),
  });
  try {
    for await (const text of printed(noting(dump({ ...found, records })), print))
      if (!process.stdout.write(text)) await once(process.stdout, 'drain');
  } finally {
    await found.close();
  }
}

async function* noting(lines: AsyncIterable<DumpLine>): AsyncGenerator<DumpLine> {
  for await (const line of lines) {
    if (line.kind === 'damage') process.exitCode = 1;
    yield line;
  }
}

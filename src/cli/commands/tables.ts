// floe tables list | status | pause | resume | rewind | rebuild | replay | commit | compact | expire
import { Command } from 'commander';
import { FloeError } from '../../base/error.ts';
import type { TableStatus } from '../../table-topic/index.ts';
import { call, HTTP_SERVER } from '../http-client.ts';
import { textTable } from '../text-table.ts';

interface ServerOption {
  readonly server: string;
}

export function tablesCommand(): Command {
  const command = new Command('tables').description(
    'the tables behind topics: state, lag, pause, resume, rewind, rebuild, replay, commit',
  );
  const server = ['--server <host:port>', 'the HTTP address', HTTP_SERVER] as const;
  command
    .command('list')
    .description('all tables, and how to attach engines')
    .option(...server)
    .action(listTables);
  command
    .command('status <topic>')
    .description('state with reason, lag, counters')
    .option('--json', 'as JSON', false)
    .option(...server)
    .action(tableStatus);
  for (const [verb, does] of Object.entries(VERBS)) {
    command
      .command(`${verb} <topic>`)
      .description(does)
      .option(...server)
      .action((topic: string, options: ServerOption) => tableAction(verb, topic, options));
  }
  command
    .command('rewind <topic>')
    .description(
      'take out the rows from an offset or time on and make them again from the log, each exactly once; what was there stays readable for a day under tag floe-before-rewind',
    )
    .option(
      '--offset <partition:offset>',
      'where a partition goes back to; may be given for several',
      (text: string, before: readonly string[]) => [...before, text],
      [] as readonly string[],
    )
    .option('--timestamp <time>', 'ISO 8601 or milliseconds, for all partitions')
    .option(...server)
    .action(rewindTable);
  command
    .command('rebuild <topic>')
    .description('the same for all that the log has; rows of records that it has no more stay')
    .option(...server)
    .action((topic: string, options: ServerOption) => rewind(topic, options, 'rebuild'));
  command
    .command('replay <topic>')
    .description(
      'try the dead letters again, from the log; those that are rows by now enter the table once',
    )
    .option(...server)
    .action(replayTable);
  return command;
}

async function replayTable(topic: string, { server }: ServerOption): Promise<void> {
  const path = `/v1/tables/${encodeURIComponent(topic)}/replay`;
  const { rows, letters, gone } = (await (await call({ server, path, method: 'POST' })).json()) as {
    readonly rows: number;
    readonly letters: number;
    readonly gone: number;
  };
  process.stdout.write(
    `${topic}: ${rows} dead letters are rows now, ${letters} still aren't, ${gone} are gone from the log\n`,
  );
}

async function rewindTable(
  topic: string,
  options: ServerOption & { readonly offset: readonly string[]; readonly timestamp?: string },
): Promise<void> {
  const { offset, timestamp } = options;
  if (offset.length > 0 === (timestamp !== undefined)) {
    throw new FloeError('invalid', 'rewind takes --offset PARTITION:OFFSET or --timestamp TIME');
  }
  const body = timestamp === undefined ? { offsets: parseOffsets(offset) } : { timestamp };
  await rewind(topic, options, 'rewind', body);
}

function parseOffsets(texts: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    texts.map((text) => {
      const match = /^(\d+):(\d+)$/.exec(text);
      if (match === null) {
        throw new FloeError('invalid', `--offset "${text}" is not PARTITION:OFFSET, e.g. 0:1500`);
      }
      return [match[1]!, Number(match[2])];
    }),
  );
}

async function rewind(
  topic: string,
  { server }: ServerOption,
  verb: string,
  body?: unknown,
): Promise<void> {
  const path = `/v1/tables/${encodeURIComponent(topic)}/${verb}`;
  const request = {
    server,
    path,
    method: 'POST' as const,
    ...(body === undefined ? {} : { body }),
  };
  const { rows, offsets } = (await (await call(request)).json()) as {
    readonly rows: number;
    readonly offsets: Readonly<Record<string, number>>;
  };
  const from = Object.entries(offsets).map(([partition, offset]) => `${partition}:${offset}`);
  process.stdout.write(`${topic}: ${rows} rows taken out, going on from ${from.join(' ')}\n`);
}

const VERBS: Readonly<Record<string, string>> = {
  pause: 'stop working on a table; records stay in the topic',
  resume: 'go on with a paused or suspended table',
  commit: 'commit what is there now instead of at the next interval',
  compact: 'rewrite small and much-deleted data files now',
  expire: 'remove old snapshots and the files only they need now',
};

async function listTables({ server }: ServerOption): Promise<void> {
  const { tables } = (await (await call({ server, path: '/v1/tables' })).json()) as {
    tables: TableStatus[];
  };
  const attach = await (await call({ server, path: '/v1/attach' })).json();
  const rows = tables.map((t) => [
    t.topic,
    t.table,
    t.state,
    t.lagRecords,
    t.counters.rows,
    t.counters.deadLetters,
    t.reason,
  ]);
  process.stdout.write(
    textTable(['topic', 'table', 'state', 'lag', 'rows', 'dead letters', 'reason'], rows),
  );
  for (const [engine, text] of Object.entries(attach as Record<string, string>))
    process.stdout.write(`\n${engine}\n${indent(text)}\n`);
}

function indent(text: string): string {
  return text
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n');
}

async function tableStatus(
  topic: string,
  { server, json }: ServerOption & { json: boolean },
): Promise<void> {
  const status = await (
    await call({ server, path: `/v1/tables/${encodeURIComponent(topic)}` })
  ).json();
  if (json) {
    process.stdout.write(`${JSON.stringify(status, null, 2)}\n`);
    return;
  }
  const rows = Object.entries(status as Record<string, unknown>).map(([name, value]) => [
    name,
    typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value),
  ]);
  process.stdout.write(textTable(['what', 'value'], rows));
}

async function tableAction(verb: string, topic: string, { server }: ServerOption): Promise<void> {
  const path = `/v1/tables/${encodeURIComponent(topic)}/${verb}`;
  const status = (await (
    await call({ server, path, method: 'POST' })
  ).json()) as Partial<TableStatus>;
  process.stdout.write(`${topic}: ${status.state ?? 'done'}\n`);
}

// floe tables list | status | pause | resume | commit | compact | expire
import { Command } from 'commander';
import type { TableStatus } from '../../table-topic/index.ts';
import { call, HTTP_SERVER } from '../http-client.ts';
import { textTable } from '../text-table.ts';

interface ServerOption {
  readonly server: string;
}

export function tablesCommand(): Command {
  const command = new Command('tables').description(
    'the tables behind topics: state, lag, pause, resume, commit',
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
  return command;
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

// floe sql: one query over the tables, as text table, JSON, CSV or Arrow.
import { Command, Option } from 'commander';
import { call, HTTP_SERVER } from '../http-client.ts';
import { type Answer, answerTable } from '../text-table.ts';

const ACCEPT = {
  table: 'application/json',
  json: 'application/json',
  csv: 'text/csv',
  arrow: 'application/vnd.apache.arrow.stream',
} as const;

interface SqlOptions {
  readonly server: string;
  readonly format: keyof typeof ACCEPT;
}

export function sqlCommand(): Command {
  return new Command('sql')
    .description("query tables with DuckDB's SQL; a topic's table answers to the topic's name")
    .argument('<query>')
    .addOption(
      new Option('--format <format>', 'how to print').choices(Object.keys(ACCEPT)).default('table'),
    )
    .option('--server <host:port>', 'the HTTP address', HTTP_SERVER)
    .addHelpText('after', '\nExample: floe sql "SELECT origin, count(*) FROM flights GROUP BY ALL"')
    .action(runSql);
}

async function runSql(query: string, { server, format }: SqlOptions): Promise<void> {
  const response = await call({
    server,
    path: '/v1/sql',
    method: 'POST',
    accept: ACCEPT[format],
    body: { query },
  });
  if (format !== 'table') {
    process.stdout.write(Buffer.from(await response.arrayBuffer()));
    if (format === 'json') process.stdout.write('\n');
    return;
  }
  process.stdout.write(answerTable((await response.json()) as Answer));
}

// floe serve: starts a node, says when it is ready, stops cleanly on SIGTERM and SIGINT.
import { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { collectAtRest, collector, loopUtilization } from '../../base/memory-at-rest.ts';
import { type ServeFlags, serveOptions } from '../options.ts';
import { type Floe, serve } from '../serve.ts';
import { collect } from '../store-flags.ts';

/** SIGTERM promises an exit within ten seconds, after draining; past this the process ends without waiting. */
const STOP_LIMIT_MS = 9_000;

export function serveCommand(): Command {
  return new Command('serve')
    .description('run a node: Kafka, schema registry, Iceberg catalog and HTTP')
    .option(
      '--data-dir <dir>',
      'where metadata and the write-ahead log live (default: ./floe-data)',
    )
    .option(
      '--kafka <host:port>',
      'the Kafka address; port 0 takes a free one (default: 127.0.0.1:9092)',
    )
    .option('--registry <host:port>', 'the schema registry (default: 127.0.0.1:8081)')
    .option('--catalog <host:port>', 'the Iceberg REST catalog (default: 127.0.0.1:8181)')
    .option('--http <host:port>', 'SQL, tables, metrics, health (default: 127.0.0.1:8080)')
    .option(
      '--storage <uri>',
      'file:///folder or s3://bucket/prefix (default: a folder of the data dir)',
    )
    .option(
      '--metadata <url>',
      'postgres://user:password@host/database: one broker of several (default: SQLite, alone)',
    )
    .option('--s3-endpoint <url>', 'of the bucket, when it is not at AWS')
    .option('--node-id <n>', 'id of this broker (default: 1; in a cluster: a free one)')
    .option('--rack <name>', 'zone of this node: clients of the same zone are sent to it')
    .option(
      '--roles <list>',
      'of front,coordinator,tables,maintenance,query,http (default: all of them)',
    )
    .option('--advertise <host:port>', 'where clients and other nodes reach the Kafka address')
    .option('--config <file.yaml>', 'options and settings by name')
    .option(
      '--set <key=value>',
      "a setting, Floe's or a Kafka broker's; may be repeated",
      collect,
      [],
    )
    .addHelpText('after', '\nEvery setting: docs/settings.md')
    .action(run);
}

async function run(flags: ServeFlags): Promise<void> {
  const floe = await serve(serveOptions(flags));
  let stopping = false;
  const stop = () => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => process.exit(0), STOP_LIMIT_MS + floe.drainMs).unref();
    void floe.stop().finally(() => process.exit(0));
  };
  process.on('SIGTERM', stop);
  process.on('SIGHUP', () => floe.reload());
  process.on('SIGINT', stop);
  // Who reads it may send a signal at once.
  process.stdout.write(`${readyLine(floe)}\n`);
  collectAtRest({ clock: systemClock, utilization: loopUtilization(), collect: collector() });
}

interface Readiness {
  readonly addresses: Floe['addresses'];
  readonly scheme?: Floe['scheme'];
}

/** The one line that scripts wait for. */
export function readyLine({ addresses, scheme = 'http' }: Readiness): string {
  const { kafka, registry, catalog, http } = addresses;
  return `Floe is ready: kafka ${kafka}, registry ${scheme}://${registry}, catalog ${scheme}://${catalog}, http ${scheme}://${http}`;
}

/** The addresses in a ready line; undefined for any other line. */
export function parseReadyLine(line: string): Floe['addresses'] | undefined {
  const match =
    /^Floe is ready: kafka (\S+), registry https?:\/\/(\S+), catalog https?:\/\/(\S+), http https?:\/\/(\S+)$/.exec(
      line,
    );
  if (match === null) return undefined;
  const [, kafka, registry, catalog, http] = match as unknown as [
    string,
    string,
    string,
    string,
    string,
  ];
  return { kafka, registry, catalog, http };
}

// A month at 1 GiB/s in and 3 × out, simulated: the product's admission, flush policy, compaction, retention, collection,
// zone and block caches on the virtual clock over a store of sizes. Prints requests, bytes and dollars beside what rivals
// publish, checks what must hold, and draws docs/operations/month.svg. What is simulated and what isn't: docs/operations/cost.md.
// Run: node bench/month.ts [--days 30] [--sample 2048] [--flush-seconds 4] [--set KEY=VALUE]… [--plot FILE]
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { textTable } from '../src/cli/text-table.ts';
import { monthSettings } from './month/log-world.ts';
import { type Bars, plot } from './month/plot.ts';
import { AUTOMQ, type Bill, billOf, WARPSTREAM, warpstreamFee } from './month/prices.ts';
import {
  checkMonth,
  getsPer4Mib,
  type MonthOptions,
  type MonthResult,
  runMonth,
} from './month/run.ts';
import { DAY_MS, GIB, MIB, MONTH, type Workload } from './month/workload.ts';

const { values: args } = parseArgs({
  options: {
    days: { type: 'string', default: '30' },
    sample: { type: 'string', default: '2048' },
    'flush-seconds': { type: 'string', default: '4' },
    maintainers: { type: 'string', default: '1' },
    set: { type: 'string', multiple: true, default: [] },
    plot: { type: 'string' },
    quiet: { type: 'boolean', default: false },
  },
});

/** What a cluster of this size is told to do; everything else is the default. */
const TUNED: Readonly<Record<string, string>> = {
  // Admitted bytes of 45 MiB/s a broker on their way for half a second, and slabs for them and the tail.
  'log.in.flight.bytes': String(48 * MIB),
  'log.slab.count': '16',
  // Few and large requests of compaction: what it writes at once is a quarter of a second of the cluster's bytes.
  'log.compact.object.bytes': String(256 * MIB),
  's3.part.bytes': String(64 * MIB),
};

/**
 * The log runs on a sample, in which bytes come slower and objects fill later: what waits by the clock for objects to fill
 * waits longer, as at the full rate nothing ever waits for it.
 */
const STRETCHED: Readonly<Record<string, string>> = {
  'log.compact.gather.ms': String(3_600_000),
  'log.compact.interval.ms': '30000',
  // There are no compacted topics to look at.
  'log.cleaner.backoff.ms': '3600000',
};

const options: MonthOptions = {
  workload: MONTH,
  settings: monthSettings({
    ...TUNED,
    ...STRETCHED,
    ...Object.fromEntries(args.set.map((one) => one.split('=', 2) as [string, string])),
  }),
  sample: Number(args.sample),
  days: Number(args.days),
  flushSeconds: Number(args['flush-seconds']),
  maintainers: Number(args.maintainers),
  seed: 1,
  onHour: ({ day, storedBytes, backlogBytes }) => {
    if (args.quiet || !Number.isInteger(day)) return;
    const seconds = (performance.now() / 1_000).toFixed(0);
    console.error(
      `day ${day}: ${(storedBytes / GIB).toFixed(0)} GiB stored, ${(backlogBytes / GIB).toFixed(1)} GiB to compact (${seconds} s)`,
    );
  },
};

const result = await runMonth(options);
const bill = billOf(result.usage);
report(result, bill, MONTH);
if (args.plot !== undefined) writeFileSync(args.plot, draw(result, bill));
checkMonth(result);
const gets = getsPer4Mib(result);
if (gets > 1.3)
  console.log(`MISSED: a reader far behind takes ${gets.toFixed(2)} GETs per 4 MiB, not 1.3`);

function report(
  { flush, tail, usage, rows, objects }: MonthResult,
  dollars: Bill,
  workload: Workload,
): void {
  console.log(textTable(['requests a second', 'of the whole cluster'], perSecond(usage.perSecond)));
  const facts: [string, string][] = [
    [
      'bytes of a flush; partitions in it',
      `${(flush.meanBytes / MIB).toFixed(2)} MiB; ${flush.partitionsPerFlush.toFixed(0)}`,
    ],
    [
      'acknowledged after, p50; p99',
      `${flush.ackP50Ms.toFixed(0)}; ${flush.ackP99Ms.toFixed(0)} ms`,
    ],
    [
      'admitted bytes on their way, one broker, most',
      `${(flush.maxInFlightBytes / MIB).toFixed(0)} MiB`,
    ],
    ['GETs a flush at the tail, all zones', tail.getsPerFlush.toFixed(2)],
    ['bytes between brokers of a zone, per byte', tail.peerBytesPerByte.toFixed(2)],
    ['bytes that compaction writes, per byte', usage.rewrites.toFixed(2)],
    ['maintainers at work at any time', usage.busyMaintainers.toFixed(1)],
    ['GETs per 4 MiB far behind', getsPer4Mib(result).toFixed(3)],
    ['stored, mean of steady days', `${(usage.storedBytes / GIB).toFixed(0)} GiB`],
    [
      'of it what retention asks for',
      `${((workload.bytesPerSecond * workload.retentionMs) / 1_000 / GIB).toFixed(0)} GiB`,
    ],
    ['stream objects; their rows', `${objects}; ${rows}`],
    [
      'database: transactions; rows a second',
      `${usage.commitsPerSecond.toFixed(0)}; ${usage.rowsPerSecond.toFixed(0)}`,
    ],
    [
      'network out; machines',
      `${(usage.networkBytesPerSecond / GIB).toFixed(1)} GiB/s; ${usage.machines}`,
    ],
    ['steady days differ from their mean by at most', `${(usage.unsteadiness * 100).toFixed(1)} %`],
  ];
  console.log(`\n${textTable(['figure', 'value'], facts)}`);
  console.log(`\n${textTable(['dollars a month', 'Floe', 'AutoMQ'], billRows(dollars))}`);
  const written = (workload.bytesPerSecond * 30 * DAY_MS) / 1_000 / GIB;
  const stored = (workload.bytesPerSecond * workload.retentionMs) / 1_000 / GIB;
  console.log(
    `\nWarpStream: ${warpstreamFee(written, stored).toFixed(0)} of fees at list price, ${WARPSTREAM.machines.toFixed(0)} of machines; Kafka (by AutoMQ): ${AUTOMQ.kafkaTotal}`,
  );
}

function perSecond(rates: Readonly<Record<string, number>>): [string, string][] {
  return Object.entries(rates)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([key, n]) => [key, n.toFixed(1)]);
}

function billRows(dollars: Bill): [string, string, string][] {
  return [
    ['machines', dollars.machines.toFixed(0), String(AUTOMQ.machines)],
    ['database', dollars.database.toFixed(0), 'none'],
    ['stored bytes', dollars.stored.toFixed(0), String(AUTOMQ.stored)],
    ['PUT, LIST', dollars.writes.toFixed(0), ''],
    ['GET', dollars.reads.toFixed(0), ''],
    ['requests', (dollars.writes + dollars.reads).toFixed(0), String(AUTOMQ.requests)],
    ['between zones', dollars.crossZone.toFixed(0), String(AUTOMQ.crossZone)],
    ['total', dollars.total.toFixed(0), String(AUTOMQ.total)],
  ];
}

function draw({ points, usage }: MonthResult, dollars: Bill): string {
  const line = (name: string, pick: (point: MonthResult['points'][number]) => number) => ({
    name,
    values: points.map((point) => [point.day, pick(point)] as const),
  });
  const requests = [
    ['produce put', 'flushes: PUT'],
    ['compaction put', 'compaction: PUT'],
    ['compaction get', 'compaction: GET'],
    ['catch-up get', 'far behind: GET'],
  ] as const;
  const panels = [
    {
      title: 'Stored, TiB, by day',
      series: [line('in the bucket', ({ storedBytes }) => storedBytes / GIB / 1_024)],
    },
    {
      title: 'Requests a second (the whole cluster)',
      series: [
        ...requests.map(([key, name]) => line(name, (point) => point.perSecond[key] ?? 0)),
        line('at the tail: GET', () => usage.perSecond['tail get']!),
      ],
    },
    {
      title: 'Flushes that wait for compaction, GiB',
      series: [line('not compacted yet', ({ backlogBytes }) => backlogBytes / GIB)],
    },
  ];
  const { machines, database, stored, writes, reads, crossZone } = dollars;
  const bars: Bars['bars'] = [
    {
      name: 'Floe, 3 × out',
      parts: { machines, database, stored, requests: writes + reads, 'between zones': crossZone },
    },
    {
      name: 'AutoMQ, 1 × out (published)',
      parts: {
        machines: AUTOMQ.machines,
        stored: AUTOMQ.stored,
        requests: AUTOMQ.requests,
        'between zones': AUTOMQ.crossZone,
      },
    },
  ];
  return plot(panels, { title: 'Dollars a month, 1 GiB/s in, three days kept', bars });
}

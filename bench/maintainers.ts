// How compaction scales with maintainers, on the virtual clock of the simulated month (bench/month/): a backlog of flushes of
// 24 brokers over 284 partitions, as they come at 1 GiB/s, is rewritten by 1, 2, 3, … maintainers side by side with the
// product's choices, claims, turns and pace over a store that takes its time. Prints how fast the flushes are sealed, how long
// it takes until nothing is left to be merged, and what that wrote and left. Metadata answers at once here.
// Run: node bench/maintainers.ts [--gib 16] [--set KEY=VALUE]… [1 2 3 …]
import { parseArgs } from 'node:util';
import { textTable } from '../src/cli/text-table.ts';
import { LogWorld, monthSettings } from './month/log-world.ts';
import { makeLibrary } from './month/run.ts';
import { GIB, MIB, MONTH, partitionsOf } from './month/workload.ts';

const { values: args, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    gib: { type: 'string', default: '16' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
const settings = monthSettings({
  // The last flushes don't fill an object, and need not wait for more. Nothing else is due.
  'log.compact.gather.ms': '30000',
  'log.cleaner.backoff.ms': '3600000',
  ...Object.fromEntries(args.set.map((one) => one.split('=', 2) as [string, string])),
});
const seed = 1;
const workload = MONTH;
const library = await makeLibrary({
  ...{ workload, settings, seed },
  ...{ sample: 1, days: 0, flushSeconds: 2 },
});

/** Steps of the clock: seconds are printed to a digit. */
const STEP_MS = 50;
/** Without a swap for so long, nothing is left to do. */
const REST_MS = 90_000;

interface Drained {
  readonly sealSeconds: number;
  readonly writeSeconds: number;
  readonly bytesWritten: number;
  /** Rows of partitions in the end: the fewer, the larger their shares. */
  readonly rows: number;
}

async function drain(maintainers: number): Promise<Drained> {
  const world = new LogWorld({
    partitionIds: partitionsOf(workload).map(({ partitionId }) => partitionId),
    retentionMs: workload.retentionMs,
    ...{ settings, seed, maintainers },
  });
  const { clock, metadata, busy, prng } = world;
  for (let bytes = 0; bytes < Number(args.gib) * GIB; ) {
    const { flush } = library.written[prng.int(library.written.length)]!;
    world.flush(flush);
    bytes += flush.bytes;
  }
  // What is younger is left alone.
  await clock.advance(settings['log.compact.age.ms']);
  const startedMs = clock.monotonic();
  let [sealedMs, swapMs, swaps] = [0, startedMs, 0];
  while (clock.monotonic() - swapMs < REST_MS) {
    await clock.advance(STEP_MS);
    if (metadata.openBytes === 0 && sealedMs === 0) sealedMs = clock.monotonic() - startedMs;
    if (metadata.work.swaps === swaps) continue;
    swaps = metadata.work.swaps;
    swapMs = clock.monotonic();
  }
  metadata.audit();
  const { bytesWritten } = busy;
  const rows = metadata.rowCount;
  await world.stop();
  const writeSeconds = (swapMs - startedMs) / 1_000;
  return { sealSeconds: sealedMs / 1_000, writeSeconds, bytesWritten, rows };
}

const table: string[][] = [];
for (const count of positionals.length > 0 ? positionals : ['1', '2', '3', '8', '24']) {
  const { sealSeconds, writeSeconds, bytesWritten, rows } = await drain(Number(count));
  const sealed = (Number(args.gib) * GIB) / MIB / sealSeconds;
  table.push([
    count,
    sealSeconds.toFixed(1),
    sealed.toFixed(0),
    writeSeconds.toFixed(0),
    (bytesWritten / (Number(args.gib) * GIB)).toFixed(2),
    String(rows),
  ]);
}
console.log(
  textTable(
    ['maintainers', 's to seal', 'MiB/s sealed', 's to rest', 'bytes per byte', 'rows'],
    table,
  ),
);

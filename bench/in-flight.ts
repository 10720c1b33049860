// What bounds how much a broker takes in over an object store, on a virtual clock: the product's admission, flushes and shares
// over a store whose PUTs and commits take a given time, with users who always have more to send. Prints MiB/s for each
// bound on bytes in flight (log.in.flight.bytes) and each time of a PUT: what processors and network could do is left out.
// Run: node bench/in-flight.ts [--users 8] [--set KEY=VALUE]…
import { parseArgs } from 'node:util';
import { ManualClock } from '../src/base/clock.ts';
import { noMetrics } from '../src/base/metrics.ts';
import { resolveSettings } from '../src/base/settings.ts';
import { Shares } from '../src/broker/shares.ts';
import { textTable } from '../src/cli/text-table.ts';
import { Admission, answerAll } from '../src/storage/log/admission.ts';
import { objectFlushPolicy } from '../src/storage/log/flush-policy.ts';
import type { OpenFlush } from '../src/storage/log/open-flush.ts';
import { logSettings } from '../src/storage/log/settings.ts';
import { SlabPool } from '../src/storage/log/slab.ts';
import { testItem } from '../src/storage/log/test-items.ts';

const MIB = 1024 * 1024;
const IN_FLIGHT_MIB = [12, 24, 48, 96];
const PUT_MS = [25, 50, 100, 200, 400, 800];
const COMMIT_MS = 10;
/** Of one PUT. */
const BYTES_PER_MS = 100 * 1_000;
const REQUEST_BYTES = 64 * 1024;
const WARM_MS = 2_000;
const RUN_MS = 8_000;

const { values: args } = parseArgs({
  options: {
    users: { type: 'string', default: '8' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
const settings = resolveSettings(
  logSettings,
  Object.fromEntries(args.set.map((one) => one.split('=', 2) as [string, string])),
);

const OK = {
  errorCode: 0,
  baseOffset: 0,
  logAppendTimeMs: -1,
  logStartOffset: 0,
  errorMessage: '',
};

/** @returns MiB/s. */
async function run(inFlightBytes: number, putMs: number): Promise<number> {
  const clock = new ManualClock();
  const slabBytes = settings['log.slab.bytes'];
  const slabs = SlabPool.create(slabBytes, Math.ceil(inFlightBytes / slabBytes) + 4);
  let committed = Promise.resolve();
  let landedBytes = 0;
  const send = async (flush: OpenFlush) => {
    const before = committed;
    let done!: () => void;
    committed = new Promise((resolve) => {
      done = resolve;
    });
    await clock.sleep(putMs + flush.bytes / BYTES_PER_MS);
    await before;
    await clock.sleep(COMMIT_MS);
    done();
    admission.landed(flush, () => {
      slabs.release(flush.slab.number);
      landedBytes += flush.bytes;
      answerAll(flush, () => OK);
    });
  };
  const admission = new Admission({
    slabs,
    policy: objectFlushPolicy(settings),
    clock,
    metrics: noMetrics,
    inFlightBytes,
    freeSlab: () => false,
    send: (flush) => void send(flush),
  });
  const shares = new Shares({
    free: () => admission.room,
    whenFree: (action) => admission.whenRelieved(action),
    factor: () => 8,
  });
  const item = testItem({ partitionId: 1, bytes: REQUEST_BYTES });
  for (let n = 0; n < Number(args.users); n += 1) {
    const share = shares.open(`user ${n}`);
    const produce = () => {
      while (shares.admits(share)) {
        shares.take(share, REQUEST_BYTES);
        void admission.append([item]).then(() => {
          shares.give(share, REQUEST_BYTES);
          produce();
        });
      }
      shares.wait(share, produce);
    };
    produce();
  }
  await clock.advance(WARM_MS);
  const before = landedBytes;
  await clock.advance(RUN_MS);
  return (landedBytes - before) / MIB / (RUN_MS / 1_000);
}

const rows = [];
for (const inFlight of IN_FLIGHT_MIB) {
  const row = [`${inFlight} MiB`];
  for (const putMs of PUT_MS) row.push(String(Math.round(await run(inFlight * MIB, putMs))));
  rows.push(row);
}
process.stdout.write(`${textTable(['in flight', ...PUT_MS.map((ms) => `PUT ${ms} ms`)], rows)}\n`);

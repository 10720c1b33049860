// The thread around a MaintenanceWorker: opens the warehouse's store for itself and answers calls one at a time.
// It gives way: where the system allows it, this thread alone runs at low priority, so that commits and queries
// have the processor first. Started by thread-client.ts.
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import { errorToShape } from '../../base/error.ts';
import { noMetrics } from '../../base/metrics.ts';
import { systemIds, systemPrng } from '../../base/prng.ts';
import { Warehouse } from '../../catalog/index.ts';
import { type OpenOptions, openObjectStore } from '../../storage/objects/index.ts';
import type { WorkerData } from '../pool.ts';
import { MaintenanceWorker } from './worker.ts';

/** Of −20 (first) to 19 (last). */
const LOW_PRIORITY = 15;

/** Elsewhere than on Linux the call is about the whole process. */
if (process.platform === 'linux') setPriority(0, LOW_PRIORITY);

export interface Call {
  readonly id: number;
  readonly method: keyof MaintenanceWorker;
  readonly argument: unknown;
}

const { storeUri, storeSettings } = workerData as WorkerData;

const worker = openObjectStore(storeUri, {
  clock: systemClock,
  prng: systemPrng,
  ids: systemIds,
  metrics: noMetrics,
  settings: storeSettings as unknown as OpenOptions['settings'],
  purpose: 'tables',
}).then((store) => new MaintenanceWorker(new Warehouse(store)));

let last: Promise<void> = Promise.resolve();

parentPort!.on('message', (call: Call) => {
  // A failed assertion ends the thread: the client tells who waits.
  last = last.then(() => answer(call));
});

async function answer({ id, method, argument }: Call): Promise<void> {
  try {
    const target = await worker;
    const value = await (target[method] as (argument: unknown) => Promise<unknown>)(argument);
    parentPort!.postMessage({ id, value });
  } catch (caught) {
    parentPort!.postMessage({ id, error: errorToShape(caught) });
  }
}

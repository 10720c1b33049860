// The thread around a TableWorker: opens the warehouse's store for itself, answers each job with its result.
// Started by pool.ts with WorkerData. Not for: anything that outlives a job.
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../base/clock.ts';
import { noMetrics } from '../base/metrics.ts';
import { systemIds, systemPrng } from '../base/prng.ts';
import { keyOfUri, type OpenOptions, openObjectStore } from '../storage/objects/index.ts';
import type { TableJob } from './job.ts';
import type { WorkerData } from './pool.ts';
import { TableWorker } from './worker.ts';

const { storeUri, storeSettings } = workerData as WorkerData;

const store = openObjectStore(storeUri, {
  clock: systemClock,
  prng: systemPrng,
  ids: systemIds,
  // Counted by the front, which sees every file it stages.
  metrics: noMetrics,
  settings: storeSettings as unknown as OpenOptions['settings'],
  purpose: 'tables',
});

const worker = new TableWorker(async (uri, parts) => {
  const opened = await store;
  await opened.put(keyOfUri(opened, uri)!, parts);
});

parentPort!.on('message', (job: TableJob) => {
  // A failed assertion rejects and ends the thread: the pool tells the table, the job's range stays unstaged.
  void worker.run(job).then((result) => parentPort!.postMessage(result));
});

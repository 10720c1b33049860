// The thread around a KeyIndexHost: opens the warehouse's store for itself and answers calls one after another, so that
// a table's prepare, landed and release never overlap. Started by key-index-client.ts.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import { errorToShape } from '../../base/error.ts';
import { noMetrics } from '../../base/metrics.ts';
import { systemIds, systemPrng } from '../../base/prng.ts';
import { Warehouse } from '../../catalog/warehouse.ts';
import { type OpenOptions, openObjectStore } from '../../storage/objects/index.ts';
import { KeyIndexHost } from './key-index.ts';
import type { KeyIndexCall, KeyIndexData } from './key-index-client.ts';
import { FolderRunFiles } from './run-files.ts';

const { storeUri, storeSettings, folder } = workerData as KeyIndexData;

const warehouse = openObjectStore(storeUri, {
  clock: systemClock,
  prng: systemPrng,
  ids: systemIds,
  metrics: noMetrics,
  settings: storeSettings as unknown as OpenOptions['settings'],
  purpose: 'tables',
}).then((store) => new Warehouse(store));

const host = new KeyIndexHost({
  io: {
    read: async (uri) => (await warehouse).read(uri),
    readRange: async (uri, start, end) => (await warehouse).readRange(uri, start, end),
    write: async (uri, parts) => (await warehouse).write(uri, parts),
    async *list(prefix) {
      yield* (await warehouse).list(prefix);
    },
    delete: async (uris) => (await warehouse).delete(uris),
  },
  ids: systemIds,
  place: (tableUuid) => {
    const own = join(folder, tableUuid);
    mkdirSync(own, { recursive: true });
    return { database: join(own, 'index.db'), runs: new FolderRunFiles(own) };
  },
});

async function answer(call: KeyIndexCall): Promise<unknown> {
  switch (call.method) {
    case 'prepare':
      return host.prepare(call.request);
    case 'landed':
      return host.landed(call.request);
    case 'lookup':
      return host.lookup(call.request);
    case 'checkpoint':
      return host.checkpoint(call.request);
    case 'release':
      return host.release(call.request.tableUuid, call.request.forget);
    case 'stop':
      return host.stop();
  }
}

let last: Promise<void> = Promise.resolve();

parentPort!.on('message', (call: KeyIndexCall) => {
  last = last.then(async () => {
    try {
      parentPort!.postMessage({ id: call.id, result: await answer(call) });
    } catch (caught) {
      parentPort!.postMessage({ id: call.id, error: errorToShape(caught) });
    }
  });
});

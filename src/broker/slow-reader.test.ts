// Consumers that stop reading their sockets, over the real log: what they were about to be sent must cost producers
// nothing, and memory stays bounded.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { noMetrics } from '../base/metrics.ts';
import { systemIds, systemPrng } from '../base/prng.ts';
import { resolveSettings } from '../base/settings.ts';
import { produceApi } from '../protocol/messages/00-produce.ts';
import { fetchApi } from '../protocol/messages/01-fetch.ts';
import { openLog } from '../storage/log/open-log.ts';
import { readSettings } from '../storage/log/read-settings.ts';
import { logSettings } from '../storage/log/settings.ts';
import { LocalObjectStore } from '../storage/objects/local.ts';
import { startTestBroker } from './testing/harness.ts';
import { RawClient } from './testing/raw-client.ts';
import { batchOf, fetchRequest, produceRequest } from './testing/requests.ts';

const common = {
  clock: systemClock,
  prng: systemPrng,
  ids: systemIds,
  logger: silentLogger,
  metrics: noMetrics,
};

const MIB = 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes of buffers that something still holds. */
function arrayBuffers(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

it('consumers that stop reading never fail a produce, and are served again when they go on', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'floe-slow-'));
  const store = await LocalObjectStore.open(join(folder, 'objects'), common);
  const settings = resolveSettings(
    { ...logSettings, ...readSettings },
    {
      'log.slab.bytes': String(MIB),
      'log.slab.count': '8',
      'log.read.copy.bytes': String(4 * MIB),
    },
  );
  const opened = await openLog({
    dataDir: folder,
    store,
    settings,
    logLevel: 'silent',
    ...common,
  });
  const { log, directory, metadata, clusterId } = opened;
  const test = await startTestBroker({ ...common, log, directory, metadata, clusterId });
  const port = Number(test.address.split(':')[1]);
  const topic = { topicId: systemIds.uuid(), name: 't', partitionCount: 1, config: {} };
  await directory.create({ ...topic, nowMs: systemClock.now() });
  const producer = await RawClient.connect(port);
  const stuck: RawClient[] = [];
  const before = arrayBuffers();
  for (let n = 0; n < 120; n += 1) {
    const request = produceRequest('t', batchOf([String(n).padEnd(300_000, 'x')]));
    const { responses } = await producer.call(produceApi, 8, request);
    expect(responses[0]!.partitionResponses[0]).toMatchObject({ errorCode: 0, baseOffset: n });
    if (n % 4 !== 3) continue;
    const consumer = await RawClient.connect(port);
    consumer.socket.pause();
    // More than a socket takes in: the rest waits in the broker.
    for (const offset of [n - 3, n - 2])
      consumer.send(fetchApi, 11, fetchRequest([{ topic: 't', offset, maxBytes: 32 * MIB }]));
    stuck.push(consumer);
  }
  const after = arrayBuffers();
  // 30 stuck consumers asked for 60 replies of about a megabyte each.
  expect(after - before).toBeLessThan(60 * MIB);
  for (const [n, consumer] of stuck.entries()) {
    consumer.socket.resume();
    const { response } = await consumer.receive(fetchApi, 11);
    const [partition] = response.responses[0]!.partitions;
    expect(partition!.errorCode).toBe(0);
    expect(partition!.records!.length).toBeGreaterThan(300_000);
    expect(partition!.highWatermark).toBeGreaterThanOrEqual(n * 4 + 4);
    consumer.close();
  }
  producer.close();
  await test.broker.stop();
  await opened.stop();
  rmSync(folder, { recursive: true });
}, 30_000);

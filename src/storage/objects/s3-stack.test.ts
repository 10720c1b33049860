// The whole stack over the S3 double: bad weather costs time only, slow reads are hedged within bounds, cost is counted.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { noLatency, type S3Double, startDouble } from '../../../test/s3/double.ts';
import { systemClock } from '../../base/clock.ts';
import { noMetrics, PrometheusMetrics } from '../../base/metrics.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { objectStoreContract } from './contract.ts';
import type { ObjectStore } from './object-store.ts';
import { probeConditionalWrites } from './probe.ts';
import { storeFor } from './purposes.ts';
import { S3ObjectStore } from './s3.ts';
import { s3Stack } from './s3-stack.ts';
import { objectSettings } from './settings.ts';

let double: S3Double;
beforeAll(async () => {
  double = await startDouble({ latency: noLatency });
});
afterAll(() => double.stop());
beforeEach(() => {
  double.clearFaults();
  double.setLatency(noLatency);
});

function open(more: Record<string, string> = {}, metrics = noMetrics): ObjectStore {
  const settings = resolveSettings(objectSettings, {
    's3.endpoint': double.endpoint,
    's3.access.key.id': 'any',
    's3.secret.access.key': 'any',
    'objects.retry.first.delay.ms': '1',
    'objects.retry.max.delay.ms': '20',
    ...more,
  });
  const bare = new S3ObjectStore({ bucket: 'b', prefix: '' }, settings, systemClock);
  return s3Stack(bare, { settings, clock: systemClock, prng: seededPrng(1), metrics });
}

objectStoreContract({ name: 'the S3 stack', make: async () => open() });

test('refusals, lost connections and errors after success are weather', async () => {
  const store = storeFor(open(), 'produce');
  double.fault({ kind: 'slow-down', share: 0.15 });
  double.fault({ kind: 'reset-after', verbs: ['put'], share: 0.1 });
  double.fault({ kind: 'error-after', verbs: ['put'], share: 0.1 });
  double.fault({ kind: 'truncate', verbs: ['get'], share: 0.1 });
  double.fault({ kind: 'skew', share: 0.05 });
  double.fault({ kind: 'checksum', verbs: ['put'], share: 0.05 });
  for (let n = 0; n < 12; n += 1) {
    const body = Buffer.from(`body ${n}`);
    await store.put(`weather/${n}`, body, { ifNoneMatch: true });
    expect(Buffer.from(await store.get(`weather/${n}`))).toEqual(body);
  }
});

test('who gives up in time gets the last error', async () => {
  const store = storeFor(open({ 'objects.retry.give.up.ms': '100' }), 'catch-up');
  double.fault({ kind: 'error-before' });
  await expect(store.get('any')).rejects.toMatchObject({ code: 'unavailable' });
});

test('a slow read is asked a second time, into the caller’s memory', async () => {
  const store = storeFor(open(), 'tail');
  await store.put('slow', Buffer.from('0123456789'));
  for (let n = 0; n < 20; n += 1) await store.get('slow');
  double.resetCounters();
  double.fault({ kind: 'never', verbs: ['get'], times: 1 });
  const into = new Uint8Array(new SharedArrayBuffer(6)).fill(1);
  const found = await store.get('slow', { start: 3, into: into.subarray(1, 5) });
  expect(Buffer.from(found).toString()).toBe('3456');
  expect(found.buffer).toBe(into.buffer);
  expect([...into]).toEqual([1, 51, 52, 53, 54, 1]);
  expect(double.counters().get.requests).toBe(2);
});

test('when everything is slow, hedges stay a share of requests', async () => {
  const store = storeFor(open({ 'objects.hedge.late.ms': '600000' }), 'tail');
  await store.put('all', Buffer.from('x'));
  for (let n = 0; n < 20; n += 1) await store.get('all');
  double.resetCounters();
  double.fault({ kind: 'slow', verbs: ['get'], ms: 40 });
  await Promise.all(Array.from({ length: 100 }, () => store.get('all')));
  expect(double.counters().get.requests).toBeLessThan(115);
});

test('a missing key is not asked for twice', async () => {
  const store = storeFor(open(), 'tail');
  double.resetCounters();
  await expect(store.get('nothing')).rejects.toMatchObject({ code: 'not-found' });
  expect(double.counters().get.requests).toBe(1);
});

test('requests, bytes and dollars are told by purpose and operation', async () => {
  const metrics = new PrometheusMetrics();
  const store = open({ 'objects.price.write': '5', 'objects.price.read': '0.5' }, metrics);
  await storeFor(store, 'produce').put('counted', Buffer.from('12345'));
  await storeFor(store, 'tables').get('counted');
  await store.head('counted');
  const text = await metrics.render();
  expect(text).toContain('floe_objects_bytes_total{purpose="produce",operation="put"} 5');
  expect(text).toContain('floe_objects_dollars_total{purpose="produce",operation="put"} 0.005');
  expect(text).toContain('floe_objects_dollars_total{purpose="tables",operation="get"} 0.0005');
  expect(text).toContain(
    'floe_objects_requests_total{purpose="other",operation="head",outcome="ok"} 1',
  );
});

test('uploads of the dead are given up, those of the living are not', async () => {
  const store = open();
  double.fault({ kind: 'never', verbs: ['part'] });
  const dying = new AbortController();
  const upload = store.put('dead', new Uint8Array(20 * 1024 * 1024), { signal: dying.signal });
  await expect.poll(() => double.uploads('b')).toBe(1);
  const started = systemClock.now();
  expect(await store.abortUploads!('', started - 60_000)).toBe(0);
  expect(double.uploads('b')).toBe(1);
  expect(await store.abortUploads!('', started + 60_000)).toBe(1);
  expect(double.uploads('b')).toBe(0);
  dying.abort();
  await expect(upload).rejects.toMatchObject({ code: 'cancelled' });
});

test('a bucket that ignores conditions is refused at the start, with the remedy', async () => {
  const store = open();
  await probeConditionalWrites(store, 'probe/1');
  double.fault({ kind: 'unconditional' });
  const refused = probeConditionalWrites(store, 'probe/2');
  await expect(refused).rejects.toMatchObject({ code: 'unsupported' });
  await expect(refused).rejects.toThrow(/Use a store with conditional writes/);
  expect(double.keys('b').filter((key) => key.startsWith('probe/'))).toEqual([]);
});

// The real S3 store over the double: the whole contract, and what each scripted fault looks like to Floe.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { resolveSettings } from '../../src/base/settings.ts';
import { objectStoreContract } from '../../src/storage/objects/contract.ts';
import { S3ObjectStore } from '../../src/storage/objects/s3.ts';
import { objectSettings } from '../../src/storage/objects/settings.ts';
import { noLatency, type S3Double, startDouble } from './double.ts';
import type { FaultKind, Verb } from './double-faults.ts';
import { startDoubleProcess } from './double-process.ts';

let double: S3Double;
beforeAll(async () => {
  double = await startDouble({ latency: noLatency, pageKeys: 10 });
});
afterAll(() => double.stop());

const storeAt = (endpoint: string, more: Record<string, string> = {}) =>
  new S3ObjectStore(
    { bucket: 'b', prefix: 'some/prefix' },
    resolveSettings(objectSettings, {
      's3.endpoint': endpoint,
      's3.access.key.id': 'any',
      's3.secret.access.key': 'any',
      's3.part.bytes': String(5 * 1024 * 1024),
      ...more,
    }),
    systemClock,
  );

objectStoreContract({ name: 'S3 over the double', make: async () => storeAt(double.endpoint) });

describe('faults', () => {
  const text = Buffer.from('some bytes');
  let store: S3ObjectStore;
  beforeEach(async () => {
    double.clearFaults();
    store = storeAt(double.endpoint);
    await store.put('k', text);
    await store.delete(['new']);
  });
  /** Only where no answer comes is there little patience. */
  const storeFor = (kind: FaultKind) =>
    kind.startsWith('never') ? storeAt(double.endpoint, { 's3.request.timeout.ms': '200' }) : store;
  const once = (kind: FaultKind, verb: Verb, key = 'k$') =>
    double.fault({ kind, verbs: [verb], key, times: 1 });

  test.each([
    ['slow-down', 'unavailable', false],
    ['error-before', 'timeout', false],
    ['error-after', 'timeout', true],
    ['reset-before', 'timeout', false],
    ['reset-after', 'timeout', true],
    ['never', 'timeout', false],
    ['never-after', 'timeout', true],
    ['checksum', 'unavailable', false],
    ['skew', 'unavailable', false],
    ['denied', 'unauthorized', false],
    ['conflict', 'unavailable', false],
  ] as const)('a put that meets %s is %s', async (kind, code, done) => {
    once(kind, 'put', 'new$');
    await expect(storeFor(kind).put('new', text, { ifNoneMatch: true })).rejects.toMatchObject({
      code,
    });
    expect((await store.head('new')) !== undefined).toBe(done);
  });

  test.each([
    ['slow-down', 'unavailable'],
    ['error-before', 'unavailable'],
    ['reset-before', 'unavailable'],
    ['never', 'unavailable'],
    ['truncate', 'unavailable'],
    ['corrupt', 'unavailable'],
    ['missing', 'not-found'],
    ['skew', 'unavailable'],
  ] as const)('a get that meets %s is %s, and works the next time', async (kind, code) => {
    once(kind, 'get');
    await expect(storeFor(kind).get('k')).rejects.toMatchObject({ code });
    expect(Buffer.from(await store.get('k'))).toEqual(text);
  });

  test('a late write lands after its connection was lost', async () => {
    double.fault({ kind: 'late', key: 'new$', ms: 500, times: 1 });
    await expect(store.put('new', text)).rejects.toMatchObject({ code: 'timeout' });
    expect(double.keys('b')).not.toContain('some/prefix/new');
    await expect.poll(() => store.head('new')).toBeDefined();
  });

  test('a stale read gives what was there before', async () => {
    await store.put('k', Buffer.from('newer'));
    once('stale', 'get');
    expect(Buffer.from(await store.get('k'))).toEqual(text);
    expect(Buffer.from(await store.get('k')).toString()).toBe('newer');
  });

  test('requests and bytes are counted by verb, faults by share of a seed', async () => {
    double.resetCounters();
    double.fault({ kind: 'slow-down', verbs: ['get'], share: 0.5 });
    const outcomes = await Promise.allSettled(Array.from({ length: 40 }, () => store.get('k')));
    const failed = outcomes.filter(({ status }) => status === 'rejected').length;
    expect(failed).toBeGreaterThan(5);
    expect(failed).toBeLessThan(35);
    expect(double.counters().get).toMatchObject({ requests: 40, failed });
  });

  test('in a process of its own it counts and fails alike', async () => {
    const apart = await startDoubleProcess({ latency: noLatency });
    try {
      const far = storeAt(apart.endpoint);
      await far.put('k', text);
      await apart.fault({ kind: 'slow-down', verbs: ['get'], times: 1 });
      await expect(far.get('k')).rejects.toMatchObject({ code: 'unavailable' });
      expect((await apart.counters()).get).toMatchObject({ requests: 1, failed: 1 });
      expect(await apart.buckets()).toEqual({ b: { objects: 1, bytes: text.length } });
    } finally {
      await apart.stop();
    }
  });

  test('a failed upload in parts leaves none behind', async () => {
    double.fault({ kind: 'slow-down', verbs: ['part'], after: 2, times: 1 });
    const large = new Uint8Array(21 * 1024 * 1024);
    await expect(store.put('new', large)).rejects.toMatchObject({ code: 'unavailable' });
    expect(double.uploads('b')).toBe(0);
  });
});

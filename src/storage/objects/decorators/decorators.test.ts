import { expect, test } from 'vitest';
import { ManualClock } from '../../../base/clock.ts';
import { FloeError } from '../../../base/error.ts';
import { seededPrng } from '../../../base/prng.ts';
import { resolveSettings } from '../../../base/settings.ts';
import { objectStoreContract } from '../contract.ts';
import { MemoryObjectStore } from '../memory.ts';
import type { ObjectStore } from '../object-store.ts';
import { probeConditionalWrites } from '../probe.ts';
import { objectSettings } from '../settings.ts';
import { countingStore, type ObjectRequest } from './counting.ts';
import { faultyStore, noFaults } from './faulty.ts';
import { retryingStore } from './retrying.ts';

const settings = resolveSettings(objectSettings, { 'objects.retry.attempts': '40' });
const body = (content: string) => Buffer.from(content);

/** A patient store over a faulty one over memory, with time running by itself. */
function flaky(seed: number) {
  const clock = new ManualClock();
  const instant = { ...instantClock(clock) };
  const memory = new MemoryObjectStore(clock);
  const faults = { ...noFaults, refuse: 0.3, loseReply: 0.3 };
  const prng = seededPrng(seed);
  const faulty = faultyStore(memory, { clock: instant, prng }, () => faults);
  return {
    memory,
    faulty,
    clock,
    store: retryingStore(faulty, { clock: instant, prng, settings }),
  };
}

/** Sleeps take no time. */
function instantClock(clock: ManualClock) {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimer: (delayMs: number, action: () => void) => clock.setTimer(delayMs, action),
    sleep: async () => {},
  };
}

objectStoreContract({ name: 'a retried faulty store', make: async () => flaky(1).store });

test('an exclusive put that lost its reply is known as our own, another’s is not', async () => {
  for (let seed = 0; seed < 50; seed += 1) {
    const { store, memory } = flaky(seed);
    await store.put('mine', body('mine'), { ifNoneMatch: true });
    expect(Buffer.from(await memory.get('mine')).toString()).toBe('mine');
    await memory.put('theirs', body('them'));
    const second = store.put('theirs', body('mine'), { ifNoneMatch: true });
    await expect(second).rejects.toMatchObject({ code: 'conflict' });
  }
});

test('gives up after the last attempt with its error', async () => {
  const { clock } = flaky(1);
  const calls: string[] = [];
  const broken: ObjectStore = countingStore(
    faultyStore(new MemoryObjectStore(clock), { clock, prng: seededPrng(1) }, () => ({
      ...noFaults,
      refuse: 1,
    })),
    clock,
    ({ operation, outcome }) => calls.push(`${operation} ${outcome}`),
  );
  const three = resolveSettings(objectSettings, { 'objects.retry.attempts': '3' });
  const store = retryingStore(broken, {
    clock: instantClock(clock),
    prng: seededPrng(1),
    settings: three,
  });
  await expect(store.get('a')).rejects.toMatchObject({ code: 'unavailable' });
  expect(calls).toEqual(['get unavailable', 'get unavailable', 'get unavailable']);
});

test('what is final is not repeated', async () => {
  const { clock, memory } = flaky(1);
  const calls: string[] = [];
  const counted = countingStore(memory, clock, ({ operation }) => calls.push(operation));
  const store = retryingStore(counted, { clock, prng: seededPrng(1), settings });
  await expect(store.get('missing')).rejects.toMatchObject({ code: 'not-found' });
  await expect(store.put('../x', body(''))).rejects.toMatchObject({ code: 'invalid' });
  expect(calls).toEqual(['get', 'put']);
});

test('a broken listing goes on after the last key', async () => {
  const { clock, memory } = flaky(1);
  const keys = ['a', 'b', 'c', 'd', 'e'];
  for (const key of keys) await memory.put(key, body(key));
  let given = 0;
  const breaking: ObjectStore = {
    ...pass(memory),
    async *list(prefix, options) {
      for await (const info of memory.list(prefix, options)) {
        if (++given % 3 === 0) throw new FloeError('unavailable', 'page lost');
        yield info;
      }
    },
  };
  const store = retryingStore(breaking, {
    clock: instantClock(clock),
    prng: seededPrng(1),
    settings,
  });
  const found: string[] = [];
  for await (const { key } of store.list('')) found.push(key);
  expect(found).toEqual(keys);
});

function pass(store: ObjectStore): ObjectStore {
  return {
    uri: store.uri,
    put: (key, bytes, options) => store.put(key, bytes, options),
    get: (key, options) => store.get(key, options),
    head: (key) => store.head(key),
    list: (prefix, options) => store.list(prefix, options),
    delete: (keys) => store.delete(keys),
  };
}

test('a late write lands after its caller gave up, with the bytes of then', async () => {
  const clock = new ManualClock();
  const memory = new MemoryObjectStore(clock);
  const store = faultyStore(memory, { clock, prng: seededPrng(3) }, () => ({
    ...noFaults,
    late: 1,
    lateMs: 1_000,
  }));
  const bytes = body('then');
  await expect(store.put('late', bytes)).rejects.toMatchObject({ code: 'timeout' });
  bytes.write('now!');
  expect(await memory.head('late')).toBeUndefined();
  await clock.advance(1_000);
  expect(Buffer.from(await memory.get('late')).toString()).toBe('then');
});

test('requests are counted with bytes and outcome', async () => {
  const clock = new ManualClock();
  const requests: ObjectRequest[] = [];
  const store = countingStore(new MemoryObjectStore(clock), clock, (request) =>
    requests.push(request),
  );
  await store.put('a', [body('12'), body('345')]);
  await store.get('a', { start: 1, length: 2 });
  await store.get('b').catch(() => {});
  for await (const _ of store.list('')) break;
  const told = requests.map(({ operation, outcome, bytes }) => [operation, outcome, bytes]);
  expect(told).toEqual([
    ['put', 'ok', 5],
    ['get', 'ok', 2],
    ['get', 'not-found', 0],
    ['list', 'ok', 0],
  ]);
});

test('a store that ignores conditions is refused', async () => {
  const memory = new MemoryObjectStore(new ManualClock());
  await probeConditionalWrites(memory, 'probe');
  const careless: ObjectStore = { ...pass(memory), put: (key, bytes) => memory.put(key, bytes) };
  await expect(probeConditionalWrites(careless, 'probe')).rejects.toMatchObject({
    code: 'unsupported',
  });
  expect(await memory.head('probe')).toBeUndefined();
});

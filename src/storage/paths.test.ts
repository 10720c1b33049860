import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkKey, compareKeys } from './objects/keys.ts';
import {
  clusterPrefix,
  fileKey,
  generationOf,
  keyBefore,
  parseKey,
  probeKey,
  streamKey,
  walKey,
  walPrefix,
  warehousePrefix,
} from './paths.ts';

const cluster = 'Zk3-xY_0aB';
const timed = fc.record({ timeMs: fc.nat({ max: 2 ** 44 }), id: fc.uuid() });

test('what is made is parsed, and is a key that every store takes', () => {
  fc.assert(
    fc.property(timed, fc.nat(), (name, generation) => {
      for (const [key, parsed] of [
        [walKey(cluster, name), { kind: 'wal', ...name }],
        [streamKey(cluster, name), { kind: 'stream', ...name }],
        [fileKey(cluster, generation), { kind: 'file', generation }],
        [
          `${warehousePrefix(cluster)}ns/t/data/a=1/x.parquet`,
          { kind: 'warehouse', path: 'ns/t/data/a=1/x.parquet' },
        ],
      ] as const) {
        checkKey(key);
        expect(key.startsWith(clusterPrefix(cluster))).toBe(true);
        expect(parseKey(cluster, key)).toEqual(parsed);
        expect(parseKey('other', key)).toBeUndefined();
      }
    }),
    { seed: 1, numRuns: 100 },
  );
});

test('key order is time order', () => {
  fc.assert(
    fc.property(timed, timed, (a, b) => {
      fc.pre(a.timeMs !== b.timeMs);
      const order = compareKeys(walKey(cluster, a), walKey(cluster, b));
      expect(Math.sign(order)).toBe(Math.sign(a.timeMs - b.timeMs));
      const from = keyBefore(walPrefix(cluster), b.timeMs);
      expect(compareKeys(walKey(cluster, a), from) > 0).toBe(a.timeMs > b.timeMs);
      expect(compareKeys(walKey(cluster, b), from) > 0).toBe(true);
    }),
    { seed: 1, numRuns: 100 },
  );
});

test.each([
  'cluster.json',
  `${cluster}/wal/1-a.wal`,
  `${cluster}/wal/000000000000001-a.log`,
  `${cluster}/stream/000000000000001-a/b.log`,
  `${cluster}/file/1.wal`,
  `${cluster}/warehouse/`,
  `${cluster}/warehouse`,
  `${cluster}/elsewhere/x`,
  `${cluster}`,
])('%s is no key of ours', (key) => expect(parseKey(cluster, key)).toBeUndefined());

test('an id that would leave its folder is a bug', () => {
  expect(() => walKey('a/b', { timeMs: 1, id: 'x' })).toThrow(/cluster id/);
  expect(() => walKey(cluster, { timeMs: 1, id: '../x' })).toThrow(/id in a key/);
  expect(() => checkKey(probeKey('x'))).not.toThrow();
  expect(generationOf(fileKey(cluster, 7))).toBe(7);
  expect(generationOf(walKey(cluster, { timeMs: 7, id: 'x' }))).toBe(0);
  expect(() => walKey(cluster, { timeMs: -1, id: 'x' })).toThrow(/whole times/);
});

import { expect, it } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import { Entries, HASH_WORDS, orderByHash, sortedByHash } from './entries.ts';

it.each([
  ['without stamps, as an index is built', 100_001, 2 ** 32, false],
  ['with stamps and many entries a key', 120_000, 20_000, true],
  ['few keys', 105_000, 3, true],
])('sorts many entries as few: %s', (_, count, keys, stamped) => {
  const prng = seededPrng(count);
  const entries = new Entries(count);
  entries.count = count;
  for (let n = 0; n < count; n += 1) {
    const key = prng.int(keys);
    entries.hashes[n * HASH_WORDS] = Math.imul(key, 0x9e3779b1);
    entries.hashes[n * HASH_WORDS + 1] = key & 1;
    entries.hashes[n * HASH_WORDS + 2] = key;
    entries.files[n] = n >>> 16;
    entries.positions[n] = n;
    entries.commits[n] = stamped ? n / 2 : 5;
    entries.partitions[n] = stamped ? n % 3 : 1;
    entries.offsets[n] = stamped ? n * 2 ** 20 : 9;
  }
  const sorted = sortedByHash(entries);
  const order = orderByHash(entries);
  const wrong: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const from = order[n]!;
    const same =
      sorted.positions[n] === from &&
      sorted.files[n] === entries.files[from] &&
      sorted.commits[n] === entries.commits[from] &&
      sorted.partitions[n] === entries.partitions[from] &&
      sorted.offsets[n] === entries.offsets[from] &&
      sorted.hashes[n * HASH_WORDS] === entries.hashes[from * HASH_WORDS] &&
      sorted.hashes[n * HASH_WORDS + 1] === entries.hashes[from * HASH_WORDS + 1] &&
      sorted.hashes[n * HASH_WORDS + 2] === entries.hashes[from * HASH_WORDS + 2];
    if (!same) wrong.push(n);
  }
  expect(wrong).toEqual([]);
  expect(sorted.count).toBe(count);
});

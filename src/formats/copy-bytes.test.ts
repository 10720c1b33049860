import { expect, test } from 'vitest';
import { buffered, copyBytes } from './copy-bytes.ts';

test('every length from every place to every place, and nothing beside it', () => {
  const source = buffered(new Uint8Array(400).map((_, i) => (i * 31) % 251).subarray(3));
  for (const length of [0, 1, 3, 4, 5, 7, 8, 31, 127, 128, 129, 200]) {
    for (const start of [0, 1, 2, 3, source.bytes.length - length]) {
      for (const at of [0, 1, 2, 3]) {
        const target = buffered(new Uint8Array(at + length + 2));
        copyBytes(source, start, start + length, target, at);
        const wanted = Buffer.alloc(at + length + 2);
        wanted.set(source.bytes.subarray(start, start + length), at);
        expect(Buffer.compare(target.bytes, wanted)).toBe(0);
      }
    }
  }
});

import { expect, test } from 'vitest';
import { hashKeyOf, SipHash128 } from './sip-hash.ts';

/** Reference outputs for the key 00…0f and the messages (), (00), (00 01). */
const VECTORS = [
  'a3817f04ba25a8e66df67214c7550293',
  'da87c1d86b99af44347659119b22fc45',
  '8177228da4a45dc7fca38bdef60affe4',
];

test('the reference vectors', () => {
  const hasher = new SipHash128(hashKeyOf(Uint8Array.from({ length: 16 }, (_, n) => n)));
  const message = Uint8Array.from({ length: 64 }, (_, n) => n);
  for (const [length, expected] of VECTORS.entries()) {
    hasher.hash(message, length);
    const bytes = new Uint8Array(Int32Array.of(hasher.h0, hasher.h1, hasher.h2, hasher.h3).buffer);
    expect(Buffer.from(bytes).toString('hex')).toBe(expected);
  }
});

test('every byte counts, in every block', () => {
  const hasher = new SipHash128(hashKeyOf(new Uint8Array(16)));
  const seen = new Set<string>();
  for (let length = 0; length < 40; length += 1) {
    const message = new Uint8Array(40);
    for (let at = -1; at < length; at += 1) {
      message.fill(0);
      if (at >= 0) message[at] = 0x80;
      hasher.hash(message, length);
      seen.add([hasher.h0, hasher.h1, hasher.h2, hasher.h3].join());
    }
  }
  expect(seen.size).toBe((40 * 41) / 2);
});

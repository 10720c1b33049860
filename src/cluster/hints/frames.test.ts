import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isFloeError } from '../../base/error.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { encodeFrame, type Frame, FrameParser, MAX_FRAME_BYTES } from './frames.ts';

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const session = fc.nat().map((seed) => seededIds(seededPrng(seed)).uuid());
const u32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });

const frame: fc.Arbitrary<Frame> = fc.oneof(
  fc.record({
    type: fc.constant('hello' as const),
    level: fc.integer({ min: 0, max: 65_535 }),
    from: u32,
    to: u32,
    session,
    nonce: bytes(32),
    clusterId: fc.stringMatching(/^[A-Za-z0-9_-]{0,40}$/),
  }),
  fc.record({
    type: fc.constant('challenge' as const),
    session,
    nonce: bytes(32),
    proof: bytes(32),
  }),
  fc.record({ type: fc.constant('proof' as const), proof: bytes(32) }),
  fc.record({
    type: fc.constant('hint' as const),
    commit: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    news: u32,
  }),
);

/** `whole` in pieces of the given lengths, the last one as long as is left. */
function cut(whole: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const length of [...lengths, whole.length]) {
    pieces.push(whole.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

test('frames come out as they went in, however they are cut', () => {
  fc.assert(
    fc.property(
      fc.array(frame, { maxLength: 8 }),
      fc.array(fc.nat(60), { maxLength: 30 }),
      (frames, lengths) => {
        const parser = new FrameParser();
        const whole = Buffer.concat(frames.map(encodeFrame));
        const found = cut(whole, lengths).flatMap((piece) => [...parser.push(piece)]);
        expect(found).toEqual(frames);
      },
    ),
    { numRuns: 300, seed: 1 },
  );
});

test('whatever arrives is a frame, the beginning of one, or a clear refusal', () => {
  let refused = 0;
  fc.assert(
    fc.property(
      fc.array(frame, { minLength: 1, maxLength: 4 }),
      fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 6 }),
      fc.uint8Array({ maxLength: 40 }),
      (frames, damages, garbage) => {
        const whole = Buffer.concat([...frames.map(encodeFrame), garbage]);
        for (const [at, value] of damages) if (at < whole.length) whole[at] = value;
        const parser = new FrameParser();
        try {
          for (const found of parser.push(whole)) {
            expect(['hello', 'challenge', 'proof', 'hint']).toContain(found.type);
            if (found.type === 'hint') expect(Number.isSafeInteger(found.commit)).toBe(true);
          }
        } catch (caught) {
          expect(isFloeError(caught, 'invalid')).toBe(true);
          refused += 1;
        }
      },
    ),
    { numRuns: 1_000, seed: 2 },
  );
  expect(refused).toBeGreaterThan(100);
});

test.each([
  ['a length of nothing', [0, 0, 0, 0]],
  ['a length that would fill memory', [0x7f, 0xff, 0xff, 0xff]],
  ['one byte more than allowed', [0, 0, 1, 1]],
  ['an unknown type', [0, 0, 0, 1, 9]],
  ['a hint that is too short', [0, 0, 0, 3, 4, 0, 0]],
  ['what a browser says', [...Buffer.from('GET / HTTP/1.1\r\n')]],
])('%s is refused', (_, start) => {
  expect(() => [...new FrameParser().push(Buffer.from(start))]).toThrow();
});

test('every frame of ours fits', () => {
  fc.assert(
    fc.property(frame, (one) => {
      expect(encodeFrame(one).length).toBeLessThanOrEqual(MAX_FRAME_BYTES);
    }),
    { numRuns: 100 },
  );
});

// Runs and packed groups as the writer makes them and the reader takes them apart.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteSink } from './byte-sink.ts';
import { bitWidth, encodeHybrid } from './hybrid.ts';
import { decodeHybrid, soleValue } from './read/unhybrid.ts';

/** Values below 2^width: noise, and runs long enough to be runs. */
const values = (width: number) => {
  const value = fc.nat(2 ** width - 1);
  const run = fc.tuple(value, fc.integer({ min: 1, max: 40 }));
  return fc
    .array(run, { minLength: 1, maxLength: 30 })
    .map((runs) => Int32Array.from(runs.flatMap(([one, times]) => Array(times).fill(one))));
};
const cases = fc
  .integer({ min: 0, max: 24 })
  .chain((width) => fc.tuple(fc.constant(width), values(width), fc.boolean()));

describe('the hybrid of runs and packed groups', () => {
  it('gives back every value of every width, whatever follows', () => {
    fc.assert(
      fc.property(cases, ([width, input, isLast]) => {
        const sink = new ByteSink(1);
        encodeHybrid(sink, input, { from: 0, to: input.length, width });
        const end = sink.length;
        // Groups are read in words where bytes follow, else one byte after the other.
        if (!isLast) sink.append(new Uint8Array(16).fill(0xff));
        const bytes = sink.view().slice();
        const run = { from: 0, end, width, count: input.length };
        const output = new Int32Array(input.length);
        decodeHybrid(bytes, run, output);
        expect(output).toEqual(input);
        const isRun = input.every((value) => value === input[0]);
        expect(soleValue(bytes, run)).toBe(isRun ? input[0] : -1);
      }),
      { numRuns: 300 },
    );
  });

  it('finds no sole value in what is damaged', () => {
    const run = { from: 0, width: bitWidth(300), count: 9 };
    const sink = new ByteSink();
    encodeHybrid(sink, new Int32Array(9).fill(300), { from: 0, to: 9, width: run.width });
    const bytes = sink.view().slice();
    expect(soleValue(bytes, { ...run, end: bytes.length })).toBe(300);
    expect(soleValue(bytes, { ...run, end: bytes.length - 1 })).toBe(-1);
    expect(soleValue(bytes, { ...run, end: bytes.length, count: 10 })).toBe(-1);
    expect(soleValue(new Uint8Array(6).fill(0xff), { ...run, end: 6 })).toBe(-1);
  });
});

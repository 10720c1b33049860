import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PrimitiveTypeName } from './types.ts';
import {
  compareValues,
  decodeSingleValue,
  encodeSingleValue,
  type PrimitiveValue,
  singleValueFromJson,
  singleValueToJson,
} from './value.ts';

const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const micros = fc.bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n });
const VALUES: readonly (readonly [PrimitiveTypeName, fc.Arbitrary<PrimitiveValue>])[] = [
  ['boolean', fc.boolean()],
  ['int', fc.integer()],
  ['long', long],
  ['float', fc.float({ noNaN: true })],
  ['double', fc.double({ noNaN: true })],
  ['date', fc.integer({ min: -719_162, max: 2_932_896 })],
  ['time', fc.bigInt({ min: 0n, max: 86_399_999_999n })],
  ['timestamp', micros],
  ['timestamptz', micros],
  ['timestamptz_ns', long],
  ['string', fc.string({ unit: 'grapheme' })],
  ['uuid', fc.uint8Array({ minLength: 16, maxLength: 16 })],
  ['fixed[5]', fc.uint8Array({ minLength: 5, maxLength: 5 })],
  ['binary', fc.uint8Array()],
  ['decimal(38, 9)', fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n })],
];

test.each(VALUES)('%s: binary and JSON forms give the value back', (type, values) => {
  fc.assert(
    fc.property(values, (value) => {
      expect(decodeSingleValue(type, encodeSingleValue(type, value))).toEqual(value);
      const json = singleValueToJson(type, value);
      const back = singleValueFromJson(type, json);
      if (typeof value === 'number') expect(back === value || Object.is(back, value)).toBe(true);
      else if (value instanceof Uint8Array)
        expect(Buffer.compare(back as Uint8Array, value)).toBe(0);
      else expect(back).toEqual(value);
    }),
    { seed: 7, numRuns: 200 },
  );
});

test('binary forms of the specification', () => {
  const hex = (type: string, value: PrimitiveValue) =>
    Buffer.from(encodeSingleValue(type, value)).toString('hex');
  expect(hex('boolean', true)).toBe('01');
  expect(hex('int', 34)).toBe('22000000');
  expect(hex('long', 34n)).toBe('2200000000000000');
  expect(hex('decimal(9,2)', 1420n)).toBe('058c');
  expect(hex('decimal(9,2)', -1n)).toBe('ff');
  expect(hex('decimal(9,2)', 128n)).toBe('0080');
});

test('bounds written before a promotion are widened; bytes that fit nothing are no bound', () => {
  expect(decodeSingleValue('long', encodeSingleValue('int', -5))).toBe(-5n);
  expect(decodeSingleValue('double', encodeSingleValue('float', 1.5))).toBe(1.5);
  expect(decodeSingleValue('int', Uint8Array.of(1, 2))).toBeUndefined();
});

test('text is ordered as its UTF-8 bytes are', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (a, b) => {
      const bytes = Buffer.compare(Buffer.from(a), Buffer.from(b));
      expect(Math.sign(compareValues(a, b))).toBe(bytes);
    }),
    { seed: 7, numRuns: 500 },
  );
  expect(compareValues('\u{1F680}', '\uFFFD')).toBeGreaterThan(0);
});

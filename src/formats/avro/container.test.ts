import { constants, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { compressSync } from 'snappy';
import { expect, test } from 'vitest';
import { FloeError } from '../../base/error.ts';
import { openContainer, writeContainer } from './container.ts';
import {
  type AvroField,
  AvroInput,
  AvroOutput,
  type AvroSchema,
  compileReader,
} from './value-codec.ts';

const schema: AvroSchema = {
  type: 'record',
  name: 'r',
  fields: [
    { name: 'n', type: 'long', 'field-id': 7 },
    { name: 's', type: ['null', 'string'] },
    { name: 'b', type: { type: 'array', items: 'bytes' } },
    { name: 'f', type: ['null', { type: 'fixed', name: 'four', size: 4 }] },
    { name: 'd', type: 'double' },
    { name: 't', type: 'boolean' },
  ],
};
const sync = new Uint8Array(16).fill(9);

const records = fc.array(
  fc.record({
    n: fc.oneof(fc.maxSafeInteger(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
    s: fc.option(fc.string({ unit: 'grapheme' })),
    b: fc.array(fc.uint8Array({ maxLength: 5 }), { maxLength: 3 }),
    f: fc.option(fc.uint8Array({ minLength: 4, maxLength: 4 })),
    d: fc.double({ noNaN: true }),
    t: fc.boolean(),
  }),
  { maxLength: 20 },
);

/** Longs come back as numbers where they fit. */
const small = (value: number | bigint) =>
  Number.isSafeInteger(Number(value)) ? Number(value) : value;

test('records come back, whatever the codec', () => {
  fc.assert(
    fc.property(records, fc.constantFrom('null', 'deflate'), (values, codec) => {
      const file = writeContainer(values, {
        schema,
        metadata: { k: 'ü' },
        sync,
        codec: codec as 'null',
      });
      const container = openContainer(file);
      expect(container.metadata.get('k')).toBe('ü');
      expect(container.records()).toEqual(values.map((one) => ({ ...one, n: small(one.n) })));
    }),
    { seed: 3, numRuns: 200 },
  );
});

test('fields are named by the caller, and left out', () => {
  const file = writeContainer([{ n: 1, s: 'x', b: [], f: null, d: 0, t: true }], {
    schema,
    metadata: {},
    sync,
  });
  const key = (field: AvroField) => (field['field-id'] === 7 ? 'seven' : undefined);
  expect(openContainer(file).records({ key })).toEqual([{ seven: 1 }]);
});

/** A container by hand, for codecs that are only read. */
function container(codec: string, block: Uint8Array): Uint8Array {
  const output = new AvroOutput();
  output.raw(Uint8Array.of(0x4f, 0x62, 0x6a, 1));
  output.long(2);
  output.string('avro.schema');
  output.string('"string"');
  output.string('avro.codec');
  output.string(codec);
  output.long(0);
  output.raw(sync);
  output.long(1);
  output.bytes(block);
  output.raw(sync);
  return output.written.slice();
}

test('snappy and zstandard are read, others refused by name', () => {
  const plain = Buffer.from([6, 97, 98, 99]);
  const snappy = Buffer.concat([compressSync(plain), Buffer.alloc(4)]);
  expect(openContainer(container('snappy', snappy)).records()).toEqual(['abc']);
  const zstd = zstdCompressSync(plain, { params: { [constants.ZSTD_c_compressionLevel]: 1 } });
  expect(openContainer(container('zstandard', zstd)).records()).toEqual(['abc']);
  expect(() => openContainer(container('xz', plain)).records()).toThrow(/xz/);
});

test('damaged and truncated files are errors, never anything else', () => {
  const values = [{ n: 1, s: 'x', b: [Uint8Array.of(1)], f: null, d: 0, t: true }];
  const file = writeContainer(values, { schema, metadata: {}, sync });
  for (let length = 0; length < file.length; length += 1) {
    const read = () => openContainer(file.subarray(0, length)).records();
    try {
      expect(read().length).toBeLessThanOrEqual(1);
    } catch (caught) {
      expect(caught).toBeInstanceOf(FloeError);
    }
  }
  fc.assert(
    fc.property(fc.nat(file.length - 1), fc.nat(255), (at, byte) => {
      const damaged = file.slice();
      damaged[at] = byte;
      try {
        openContainer(damaged).records();
      } catch (caught) {
        expect(caught).toBeInstanceOf(FloeError);
      }
    }),
    { seed: 4, numRuns: 500 },
  );
});

test('a count that the bytes can’t hold is refused before anything is allocated', () => {
  const output = new AvroOutput();
  output.long(2 ** 40);
  const read = compileReader({ type: 'array', items: 'long' });
  expect(() => read(new AvroInput(output.written))).toThrow(/elements in fewer bytes/);
});

import fc from 'fast-check';
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js';
import { serializeTCompactProtocol } from 'hyparquet-writer/src/thrift.js';
import { expect, it } from 'vitest';
import { ByteSink } from './byte-sink.ts';
import { readPageHeader } from './read/page-header.ts';
import { PAGE_TYPE, serializeThrift, type ThriftStruct, writePageHeader } from './thrift.ts';

const anyInt = fc.oneof(fc.integer(), fc.constantFrom(0, -1, 63, 64, -64, -65, 2 ** 31 - 1));
const anyLong = fc.maxSafeInteger().map((value) => BigInt(value) / 2n);
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('a'.repeat(127), 'b'.repeat(128), `${'c'.repeat(126)}é`),
);
const anyBytes = fc.uint8Array({ maxLength: 200 });

const { struct: anyStruct } = fc.letrec<{ struct: ThriftStruct; value: unknown }>((tie) => ({
  struct: fc
    .array(fc.tuple(fc.integer({ min: 1, max: 3 }), tie('value')), { maxLength: 5 })
    .map((fields) => {
      let id = 0;
      return Object.fromEntries(fields.map(([delta, value]) => [`field_${(id += delta)}`, value]));
    }),
  value: fc.oneof(
    { depthSize: 'small' },
    anyInt,
    anyLong,
    fc.boolean(),
    anyText,
    anyBytes,
    fc.constant(undefined),
    fc.array(anyInt, { minLength: 1, maxLength: 20 }),
    fc.array(anyText, { minLength: 1, maxLength: 3 }),
    fc.array(tie('struct'), { minLength: 1, maxLength: 16 }),
    tie('struct'),
  ),
}));

it('writes structs as hyparquet-writer does', () => {
  fc.assert(
    fc.property(anyStruct, (struct) => {
      const writer = new ByteWriter(256);
      serializeTCompactProtocol(writer as never, struct as never);
      expect(serializeThrift(struct)).toEqual(new Uint8Array(writer.getBuffer()));
    }),
    { numRuns: 200, seed: 3 },
  );
});

it('writes page headers that are read back', () => {
  const size = fc.nat(2 ** 30);
  const anyHeader = fc.record({
    type: fc.constantFrom(PAGE_TYPE.DATA, PAGE_TYPE.DICTIONARY),
    uncompressedSize: size,
    crc: fc.integer(),
    count: size,
    encoding: fc.constantFrom(0, 8),
  });
  fc.assert(
    fc.property(anyHeader, (header) => {
      const sink = new ByteSink(1);
      writePageHeader(sink, { ...header, storedSize: 3 });
      const bytes = new Uint8Array([...sink.view(), 1, 2, 3]);
      const { type, uncompressedSize, count, encoding } = header;
      expect(readPageHeader(bytes, 0)).toMatchObject({
        ...{ type, uncompressedSize, count, encoding },
        ...{ compressedSize: 3, length: sink.length, definitionEncoding: 3, repetitionEncoding: 3 },
      });
    }),
    { numRuns: 100, seed: 4 },
  );
});

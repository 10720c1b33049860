// Anything at all is a schema whose text is canonical, or refused as invalid; nothing takes unreasonable time.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { protoDifferences } from './compatibility.ts';
import { parseProtobuf, protobufFormat } from './format.ts';
import { protoText } from './text.ts';

const NAMES = ['a', 'b', 'M', 'N', 'E', 'message', 'optional', 'stream'];
const TYPES = [
  'int32',
  'string',
  'M',
  '.M',
  'N',
  'E',
  'M.N',
  'map<string, M>',
  'map<M, M>',
  'group',
];

/** Statements that are mostly right, in any order and nesting. */
const statement = fc.letrec<{ any: string }>((tie) => ({
  any: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc
      .tuple(
        fc.constantFrom('', 'optional ', 'repeated ', 'required '),
        fc.constantFrom(...TYPES),
        fc.constantFrom(...NAMES),
        fc.integer({ min: 0, max: 9 }),
        fc.constantFrom('', ' [deprecated = true]', ' [(x).y = { a: 1 b { c: "d" } }]'),
      )
      .map(
        ([label, type, name, number, options]) => `${label}${type} ${name} = ${number}${options};`,
      ),
    fc.constantFrom(
      'reserved 5, 7 to max;',
      'extensions 9 to 11;',
      'option (o) = 1;',
      'A = 0;',
      ';',
      '}',
    ),
    fc
      .tuple(
        fc.constantFrom('message', 'enum', 'oneof', 'extend', 'service'),
        fc.constantFrom(...NAMES),
        fc.array(tie('any'), { maxLength: 4 }),
      )
      .map(([kind, name, inner]) => `${kind} ${name} { ${inner.join(' ')} }`),
  ),
})).any;

const source = fc
  .tuple(
    fc.constantFrom('', 'syntax = "proto3";', 'edition = "2023";'),
    fc.array(statement, { maxLength: 6 }),
  )
  .map(([head, body]) => `${head} ${body.join('\n')}`);

test('text is canonical and reads itself, descriptors too', () => {
  let taken = 0;
  fc.assert(
    fc.property(fc.oneof(source, fc.string()), fc.boolean(), (text, normalize) => {
      try {
        const schema = parseProtobuf(text, []);
        const once = protoText(schema, { normalize });
        const again = parseProtobuf(once, []);
        expect(protoText(again, { normalize })).toBe(once);
        expect(protoDifferences(again, schema)).toEqual([]);
        const descriptor = parseProtobuf(protobufFormat.formatted(schema, 'serialized')!, []);
        expect(protoDifferences(descriptor, schema)).toEqual([]);
        expect(protoDifferences(schema, descriptor)).toEqual([]);
        taken += 1;
      } catch (caught) {
        expect(caught).toMatchObject({ code: 'invalid' });
      }
    }),
    { numRuns: 1_500, seed: 3 },
  );
  expect(taken).toBeGreaterThan(50);
});

test('large and hostile sources', () => {
  const fields = Array.from({ length: 5_000 }, (_, at) => `M${at % 500} f${at} = ${at + 1};`);
  const messages = Array.from({ length: 500 }, (_, at) => `message M${at} {}`);
  const large = `message All { ${fields.map((one) => `optional ${one.replace(/= 19\d{3};/, '= 99999;')}`).join('\n')} }\n${messages.join('\n')}`;
  expect(protoText(parseProtobuf(large, [])).length).toBeGreaterThan(100_000);
  for (const text of ['/*'.repeat(50_000), '"'.repeat(100_001), '('.repeat(100_000)])
    expect(() => parseProtobuf(text, [])).toThrow(/line 1/);
});

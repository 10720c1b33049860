// Changes of Protobuf schemas beyond the recorded verdicts (levels.test.ts).
import { describe, expect, test } from 'vitest';
import { protoDifferences, protoSentence } from './compatibility.ts';
import { parseProtobuf } from './format.ts';

const P = 'syntax = "proto3"; package a;';
const parse = (body: string, mine = '') =>
  parseProtobuf(
    `${body.startsWith('syntax') ? '' : P} ${body}`,
    mine === ''
      ? []
      : [{ reference: { name: 'mine.proto', subject: 'mine', version: 1 }, text: mine }],
  );
const changes = (before: string, after: string) =>
  protoDifferences(parse(after), parse(before)).map(({ type, path }) => `${type} ${path}`);

describe('breaks', () => {
  test.each([
    ['message M {}', 'syntax = "proto3"; package b; message M {}', ['PACKAGE_CHANGED #/']],
    ['message M { message N {} }', 'message M {}', ['MESSAGE_REMOVED #/M/N']],
    [
      'message M { string a = 1; }',
      'message M { int32 a = 1; }',
      ['FIELD_SCALAR_KIND_CHANGED #/M/1'],
    ],
    [
      'message M { map<string, int32> a = 1; }',
      'message M { repeated int32 a = 1; }',
      ['FIELD_KIND_CHANGED #/M/1'],
    ],
    [
      'message M { oneof o { int32 a = 1; } int32 b = 2; }',
      'message M { oneof o { int32 a = 1; int32 b = 2; } }',
      ['FIELD_MOVED_TO_EXISTING_ONEOF #/M/o'],
    ],
    [
      'message M { N n = 1; } message N { M m = 1; int32 x = 2; }',
      'message M { N n = 1; } message N { M m = 1; string x = 2; }',
      ['FIELD_SCALAR_KIND_CHANGED #/N/2'],
    ],
  ])('%s → %s', (before, after, found) => {
    expect(changes(before, after)).toEqual(found);
  });

  test('editions: legacy required fields', () => {
    const file = (body: string) =>
      parseProtobuf(`edition = "2023"; message M { int32 a = 1; ${body} }`, []);
    const after = file('int32 b = 2 [features.field_presence = LEGACY_REQUIRED];');
    expect(protoDifferences(after, file(''))).toEqual([
      { type: 'REQUIRED_FIELD_ADDED', path: '#/M/2' },
    ]);
  });

  test('in a file that is referred to', () => {
    const mine = (type: string) =>
      `syntax = "proto3"; package m; message Mine { ${type} a = 1; Mine next = 2; }`;
    const user = 'import "mine.proto"; message M { m.Mine mine = 1; }';
    const [before, same, after] = ['int32', 'int64', 'string'].map((type) =>
      parse(user, mine(type)),
    );
    expect(protoDifferences(same!, before!)).toEqual([]);
    expect(protoDifferences(after!, before!).map(({ type }) => type)).toEqual([
      'FIELD_SCALAR_KIND_CHANGED',
      'FIELD_NAMED_TYPE_CHANGED',
    ]);
  });
});

test.each([
  [
    'a map written as entries',
    'message M { map<string, int32> m = 1; }',
    'message M { repeated E m = 1; message E { option map_entry = true; string key = 1; int32 value = 2; } }',
  ],
  ['an enum is a number', 'message M { E e = 1; } enum E { A = 0; }', 'message M { int32 e = 1; }'],
  ['order of messages', 'message M {} message N {}', 'message N {} message M {}'],
  ['optional or not', 'message M { int32 a = 1; }', 'message M { optional int32 a = 1; }'],
  [
    'a oneof renamed',
    'message M { oneof o { int32 a = 1; } }',
    'message M { oneof p { int32 a = 1; } }',
  ],
])('%s is no change', (_name, before, after) => {
  expect(changes(before, after)).toEqual([]);
  expect(changes(after, before)).toEqual([]);
});

test('sentences name the sides', () => {
  const difference = { type: 'MESSAGE_REMOVED', path: '#/M' } as const;
  expect(protoSentence(difference, 'new', 'old')).toBe(
    "The new schema is missing a MESSAGE type at path '#/M' in the old schema",
  );
});

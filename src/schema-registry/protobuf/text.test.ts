// Source → canonical text, and there and back through descriptors.
import { describe, expect, test } from 'vitest';
import { parseProtobuf, protobufFormat } from './format.ts';
import { protoText } from './text.ts';

const parse = (text: string, imports: Record<string, string> = {}) =>
  parseProtobuf(
    text,
    Object.entries(imports).map(([name, source]) => ({
      reference: { name, subject: name, version: 1 },
      text: source,
    })),
  );
const canonical = (text: string, normalize = false) => protoText(parse(text), { normalize });

const EVERYTHING = `
// a comment
edition = /* another */ "2023"; package a.b;
import public "google/protobuf/timestamp.proto"; import 'unused/option.proto'; import weak "w.proto";
option java_package = "x" 'y'; option (file_rule).deep.min = 1;
extend google.protobuf.FieldOptions { int32 z = 50000; Rule rule = 50001; }
extend google.protobuf.FileOptions { Rule file_rule = 50002; }
message Rule { Deep deep = 1; message Deep { int32 min = 1; repeated string names = 2; } }
message M {
  option deprecated = true; reserved 7, 9 to 12; reserved foo, bar; extensions 100 to max;
  int32 a = 1 [default = 0x10, (z) = -5, (rule) = { deep { min: 1, names: ["a", 'b'] } }, deprecated=true];
  map<string, .a.b.M> m = 6; ; repeated .a.b.M.N repeated = 13; N message = 14;
  oneof o { string b = 5; google.protobuf.Timestamp at = 4; }
  message N {} enum E { option allow_alias = true; reserved 5 to max; A = 0; B = 0 [deprecated = true]; NEGATIVE = -1; }
}
service S { option deprecated = true; rpc Get (M) returns (stream .a.b.M) { option idempotency_level = NO_SIDE_EFFECTS; } rpc Put (stream M) returns (M); }
`;

test('every construct of the language keeps its meaning', () => {
  expect(canonical(EVERYTHING)).toMatchSnapshot();
  expect(canonical(EVERYTHING, true)).toMatchSnapshot();
  for (const normalize of [false, true]) {
    const text = canonical(EVERYTHING, normalize);
    expect(canonical(text, normalize)).toBe(text);
  }
});

test('proto2: labels, groups and defaults', () => {
  const text = `message M { required group G = 1 { optional string s = 1 [default = "a\\"b"]; } optional repeated.T r = 2; }
    package repeated; message T {} message optional { repeated T of = 1; }`;
  expect(canonical(text)).toBe(
    `package repeated;

message M {
  optional repeated.T r = 2;

  required group G = 1 {
    optional string s = 1 [default = "a\\"b"];
  }
}
message T {}
message optional {
  repeated T of = 1;
}
`,
  );
});

test('normalised: what differs in order only is the same', () => {
  const a =
    'syntax = "proto3"; import "b.proto"; import "a.proto"; message M { string b = 2; int32 a = 1; N n = 3; } message N {} enum E { A = 0; C = 2; B = 1; }';
  const b =
    'syntax = "proto3"; import "a.proto"; import "b.proto"; message M { int32 a = 1; string b = 2; .N n = 3; } enum E { A = 0; B = 1; C = 2; } message N {}';
  expect(canonical(a)).not.toBe(canonical(b));
  expect(canonical(a, true)).toBe(canonical(b, true));
});

describe('refused, with the reason', () => {
  const proto3 = (body: string) => `syntax = "proto3"; ${body}`;
  test.each([
    ['message {', 'line 1: expected a name, found "{"'],
    ['\n\nmessage A { int32 a = 1 }', 'line 3: expected ";", found "}"'],
    ['message A {', 'expected "}", found the end'],
    ['syntax = "proto4";', '"proto4" is not known'],
    ['edition = "1999";', 'edition "1999" is not known'],
    ['message A { optional int32 a = 1; optional int32 b = 1; }', 'fields a and b of A'],
    ['message A { optional int32 a = 1; optional int32 a = 2; }', 'field a of A is defined twice'],
    ['message A { optional B a = 1; }', 'type "B" is defined neither here nor'],
    ['message A {} message A {}', 'A is defined more than once'],
    ['message A { map<float, A> m = 1; }', "float can't be the key of a map"],
    ['message A { optional int32 a = 0; }', '0 is no field number'],
    ['message A { optional int32 a = 19500; }', '19500 is no field number'],
    ['enum E {}', 'enum E has no values'],
    [proto3('enum E { A = 1; }'), 'is not 0'],
    [proto3('message A { required int32 a = 1; }'), 'not allowed in proto3'],
    [proto3('message A { repeated group G = 1 {} }'), 'groups are of proto2 only'],
    [proto3(`message A ${'{ message B '.repeat(300)}`), 'nested deeper than 200'],
    [proto3('option a = "x'), 'unexpected "\\""'],
    ['CgA=', 'neither .proto source nor'],
  ])('%j', (text, reason) => {
    expect(() => canonical(text)).toThrow(reason);
  });
});

test('a descriptor in base64 is a schema; both ways mean the same', () => {
  const schema = parse(EVERYTHING);
  const serialized = protobufFormat.formatted(schema, 'serialized')!;
  const back = parse(serialized);
  const again = parse(protobufFormat.formatted(parse(protoText(back)), 'serialized')!);
  expect(protoText(again)).toBe(protoText(back));
  // Options that are extensions don't survive; the rest does.
  const form = { normalize: true, ignoreExtensions: true };
  const plain = (text: string) => text.replace(/^import.*\n/gm, '');
  expect(plain(protoText(back, form))).toBe(plain(protoText(schema, form)));
});

test('imports: references, built-in files and what they import', () => {
  const text =
    'syntax = "proto3"; import "mine.proto"; import "google/type/datetime.proto"; import "confluent/meta.proto"; message M { acme.Mine mine = 1; google.type.DateTime at = 2; confluent.Meta meta = 3; }';
  const imports = { 'mine.proto': 'syntax = "proto3"; package acme; message Mine {}' };
  expect([...parse(text, imports).imports.keys()]).toEqual([
    'mine.proto',
    'google/type/datetime.proto',
    'google/protobuf/duration.proto',
    'confluent/meta.proto',
    'google/protobuf/descriptor.proto',
  ]);
  expect(() => parse(text)).toThrow('type "acme.Mine"');
  expect(() => parse('import "constructor.proto"; message M {}')).not.toThrow();
});

// JSON Schema texts: what is refused, where references lead, and their canonical form.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonDifferences } from './compatibility.ts';
import { jsonSchemaFormat as format } from './format.ts';
import { parseJsonSchema } from './parse.ts';

const RULES = { validateDefaults: false };
const canonical = (text: string, normalize = false) =>
  format.text(format.parse(text, [], RULES), { normalize });

test('the canonical text is compact, digits and order stay', () => {
  const text = '{ "type": "number",\n "maximum": 9223372036854775807, "default": 1.0 }';
  expect(canonical(text)).toBe('{"type":"number","maximum":9223372036854775807,"default":1.0}');
  expect(canonical('{"b":[{"d":1,"c":2}],"a":true}', true)).toBe('{"a":true,"b":[{"c":2,"d":1}]}');
});

describe('refused, with the reason', () => {
  test.each([
    ['[1', 'not JSON'],
    ['[]', 'an object, true or false'],
    ['{"type": 5}', '#/type: 5 is none of'],
    ['{"type": "text"}', '#/type: "text" is none of'],
    ['{"type": []}', 'an empty list'],
    ['{"properties": []}', '#/properties is not an object'],
    ['{"properties": {"a": 1}}', '#/properties/a is no schema'],
    ['{"type": "object", "required": "a"}', '#/required is not a list of names'],
    ['{"type": "string", "maxLength": "1"}', '#/maxLength is not a number'],
    ['{"oneOf": []}', '#/oneOf is not a list of schemas'],
    ['{"$ref": "#/definitions/a"}', '$ref "#/definitions/a" leads nowhere'],
    ['{"$ref": "other.json"}', 'add a reference of that name'],
  ])('%s', (text, reason) => {
    expect(() => canonical(text)).toThrow(reason);
  });
});

describe('references', () => {
  const string = '{"type":"string"}';
  test.each<[string, object, Record<string, string>]>([
    ['a pointer', { $ref: '#/$defs/a~1b%25', $defs: { 'a/b%': { type: 'string' } } }, {}],
    ['an anchor', { $ref: '#here', $defs: { a: { $anchor: 'here', type: 'string' } } }, {}],
    ["draft 4's id", { $ref: '#x', definitions: { a: { id: '#x', type: 'string' } } }, {}],
    [
      'an embedded resource',
      { $id: 'http://a/b/c', $ref: 'd', $defs: { d: { $id: 'd', type: 'string' } } },
      {},
    ],
    ['a name that is a URI', { $ref: 'http://a/b.json' }, { 'http://a/b.json': string }],
    ['a name that is a file', { $id: 'http://a/x/y.json', $ref: 'b.json' }, { 'b.json': string }],
    [
      'inside another document',
      { $ref: 'b.json#/$defs/s' },
      { 'b.json': `{"$defs":{"s":${string}}}` },
    ],
    [
      'through another document',
      { $ref: 'b.json' },
      { 'b.json': '{"$ref":"c.json"}', 'c.json': string },
    ],
    [
      "by the other document's own id",
      { $ref: 'urn:b' },
      { 'b.json': '{"$id":"urn:b","type":"string"}' },
    ],
  ])('%s', (_name, schema, others) => {
    const { root } = parseJsonSchema(JSON.stringify(schema), new Map(Object.entries(others)));
    const plain = parseJsonSchema(string, new Map()).root;
    expect(jsonDifferences(root, plain)).toEqual([]);
    expect(jsonDifferences(plain, root)).toEqual([]);
  });

  test("the drafts' own schemas are known", () => {
    const ref = { $ref: 'http://json-schema.org/draft-07/schema#' };
    expect(() => canonical(JSON.stringify(ref))).not.toThrow();
  });

  test('siblings of $ref count since 2019-09 only', () => {
    const schema = (draft: string) =>
      JSON.stringify({
        $schema: draft,
        $ref: '#/$defs/a',
        maxLength: 1,
        $defs: { a: { type: 'string' } },
      });
    const kind = (draft: string) => parseJsonSchema(schema(draft), new Map()).root.kind;
    expect(kind('http://json-schema.org/draft-07/schema#')).toBe('ref');
    expect(kind('https://json-schema.org/draft/2019-09/schema')).toBe('combined');
  });
});

test('any JSON is a schema whose text is canonical and reads itself, or refused as invalid', () => {
  const word = fc.constantFrom(
    'type',
    'properties',
    'items',
    'oneOf',
    'enum',
    '$ref',
    'required',
    'a',
  );
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom('string', 'object', 'array', '#', '#/properties/a', true, 1, null),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(word, tie('tree'), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(tree, (value) => {
      try {
        const parsed = format.parse(JSON.stringify(value), [], RULES);
        const text = format.text(parsed, { normalize: true });
        expect(canonical(text, true)).toBe(text);
        expect(jsonDifferences(parsed.root, parsed.root)).toEqual([]);
      } catch (caught) {
        expect(caught).toMatchObject({ code: 'invalid' });
      }
    }),
    { numRuns: 1_000, seed: 7 },
  );
});

import { describe, expect, it } from 'vitest';
import { parseAvroSchema } from './schema.ts';

const parse = (schema: unknown, references: unknown[] = []) =>
  parseAvroSchema(
    JSON.stringify(schema),
    references.map((reference) => JSON.stringify(reference)),
  );

describe('parseAvroSchema', () => {
  it('resolves names in their namespaces, aliases and references', () => {
    const money = { type: 'fixed', name: 'shop.Money', size: 4 };
    const schema = parse(
      {
        type: 'record',
        name: 'Order',
        namespace: 'shop',
        aliases: ['Purchase', 'old.Order'],
        doc: 'an order',
        fields: [
          { name: 'total', type: 'Money', aliases: ['sum'], default: null },
          { name: 'same', type: 'shop.Money' },
          { name: 'self', type: ['null', 'Order'] },
        ],
      },
      [money],
    );
    if (schema.kind !== 'record') throw new Error('a record');
    expect(schema).toMatchObject({
      name: 'shop.Order',
      aliases: ['shop.Purchase', 'old.Order'],
      doc: 'an order',
    });
    const [total, same, self] = schema.fields;
    expect(total).toMatchObject({
      aliases: ['sum'],
      default: null,
      type: { kind: 'fixed', size: 4 },
    });
    expect(same!.type).toBe(total!.type);
    expect(self!.type).toEqual({ kind: 'union', branches: [{ kind: 'null' }, schema] });
  });

  it('ignores logical types that are unknown or do not fit', () => {
    expect(parse({ type: 'int', logicalType: 'timestamp-millis' })).toEqual({ kind: 'int' });
    expect(parse({ type: 'bytes', logicalType: 'decimal', precision: 2, scale: 3 })).toEqual({
      kind: 'bytes',
    });
    expect(parse({ type: 'string', logicalType: 'toString' })).toEqual({ kind: 'string' });
    const fixed = { type: 'fixed', name: 'F', size: 2, logicalType: 'decimal', precision: 5 };
    expect(parse(fixed)).not.toHaveProperty('logical');
    expect(parse({ ...fixed, precision: 4 })).toHaveProperty('logical.precision', 4);
  });

  it('takes bare names and wrapped types', () => {
    expect(parseAvroSchema('string')).toEqual({ kind: 'string' });
    expect(parse({ type: { type: 'long', logicalType: 'timestamp-micros' } })).toEqual({
      kind: 'long',
      logical: { kind: 'timestamp-micros' },
    });
  });

  const named = (more: object) => ({ type: 'record', name: 'R', fields: [], ...more });
  it.each([
    ['{', 'is not JSON'],
    [5, 'not 5'],
    [{}, '"type" is missing'],
    ['Unknown', 'type "Unknown" is not defined'],
    [named({ name: undefined }), 'needs a "name"'],
    [named({ name: '1x' }), '"1x" is not an Avro name'],
    [named({ fields: undefined }), 'record R needs "fields"'],
    [
      named({ fields: [{ name: 'a', type: 'strin' }] }),
      'at R.fields[0].a: type "strin" is not defined',
    ],
    [
      named({
        fields: [
          { name: 'a', type: 'int' },
          { name: 'a', type: 'int' },
        ],
      }),
      'two fields "a"',
    ],
    [named({ fields: [{ type: 'int' }] }), 'a field needs a "name"'],
    [['int', 'int'], 'two branches of type int'],
    [['int', ['null', 'string']], 'a union directly inside a union'],
    [{ type: 'enum', name: 'E', symbols: ['A', 'A'] }, 'the symbol "A" twice'],
    [{ type: 'enum', name: 'E', symbols: ['A'], default: 'B' }, 'default "B"'],
    [{ type: 'enum', name: 'E' }, 'needs "symbols"'],
    [{ type: 'fixed', name: 'F' }, 'needs "size"'],
    [[named({}), { type: 'array', items: named({}) }], 'type "R" is defined twice'],
  ])('says where and what is wrong: %j', (schema, message) => {
    const text = schema === '{' ? '{' : JSON.stringify(schema);
    expect(() => parseAvroSchema(text)).toThrow(message);
  });

  it('takes schemas a hundred levels deep and refuses absurd ones', () => {
    const nested = (levels: number) => {
      let schema: unknown = 'int';
      for (let i = 0; i < levels; i++) schema = { type: 'array', items: schema };
      return schema;
    };
    expect(parse(nested(100)).kind).toBe('array');
    expect(() => parse(nested(1000))).toThrow('nested deeper than 256 levels');
  });
});

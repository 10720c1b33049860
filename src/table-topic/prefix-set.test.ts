import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PrefixSet } from './prefix-set.ts';

test('finds every beginning of a name, nested ones too', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 5 });
  fc.assert(
    fc.property(fc.array(text), text, (prefixes, name) => {
      const set = new PrefixSet(prefixes);
      const expected = new Set(prefixes.filter((prefix) => name.startsWith(prefix)));
      expect(new Set(set.of(name))).toEqual(expected);
      expect(set.covers(name)).toBe(expected.size > 0);
    }),
    { seed: 1 },
  );
});

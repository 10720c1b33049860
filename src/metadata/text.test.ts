import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clientText, storedText } from './text.ts';

test('text of clients comes back whatever it holds, without U+0000 in between, and stays apart', () => {
  const text = fc.string({ unit: fc.constantFrom('a', '0', '1', '\0', '\u001b') });
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(clientText(storedText(a))).toBe(a);
      expect(storedText(a)).not.toContain('\0');
      expect(storedText(a) === storedText(b)).toBe(a === b);
    }),
    { seed: 1, numRuns: 500 },
  );
});

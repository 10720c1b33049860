import { expect, test } from 'vitest';
import { bool, findSetting, int, list, oneOf, resolveSettings, text } from './settings.ts';

const definitions = {
  'num.partitions': int({
    default: 1,
    min: 1,
    max: 1_000,
    doc: 'Partitions of a new topic.',
    aliases: ['partitions'],
  }),
  'auto.create': bool({ default: true, doc: 'Create on first use.' }),
  policy: oneOf(['delete', 'compact'], { default: 'delete', doc: 'What becomes of old records.' }),
  codecs: list({ default: [], values: ['gzip', 'zstd'], doc: 'Codecs.' }),
  name: text({ default: '', pattern: /^[a-z]*$/, wanted: 'lower-case letters', doc: 'A name.' }),
};

test('given values are parsed, the others take their default, aliases lead to their setting', () => {
  expect(
    resolveSettings(definitions, {
      partitions: ' 12 ',
      'auto.create': 'FALSE',
      codecs: 'gzip, zstd',
    }),
  ).toEqual({
    'num.partitions': 12,
    'auto.create': false,
    policy: 'delete',
    codecs: ['gzip', 'zstd'],
    name: '',
  });
  expect(findSetting(definitions, 'partitions')?.[0]).toBe('num.partitions');
});

test.each([
  [{ 'num.partitions': '0' }, 'num.partitions: "0" is not within 1…1000 (valid: 1…1000)'],
  [{ 'num.partitions': '1.5' }, 'num.partitions: "1.5" is not a whole number (valid: 1…1000)'],
  [{ 'num.partitions': '' }, 'num.partitions: "" is not a whole number (valid: 1…1000)'],
  [{ 'auto.create': 'yes' }, 'auto.create: "yes" is not true or false (valid: true, false)'],
  [{ policy: 'keep' }, 'policy: "keep" is not one of delete, compact (valid: delete, compact)'],
  [{ codecs: 'gzip,lzma' }, 'codecs: "lzma" is not one of gzip, zstd (valid: gzip, zstd)'],
  [{ name: 'A' }, 'name: "A" is not lower-case letters'],
  [{ nonsense: '1' }, 'unknown setting "nonsense": see docs/settings.md for the names'],
  [{ constructor: '1' }, 'unknown setting "constructor": see docs/settings.md for the names'],
])('%o', (given, message) => {
  expect(() => resolveSettings(definitions, given as Record<string, string>)).toThrow(message);
});

// The repository lints itself: what no tool checks. Each rule says what to do instead.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((path) => path !== '' && existsSync(join(root, path)));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const code = tracked.filter((path) => /^(src|test|bench|tools)\/.*\.(ts|mjs)$/.test(path));
const source = code.filter((path) => path.startsWith('src/') && !path.endsWith('.test.ts'));
const texts = tracked.filter(
  (path) => /\.(ts|mjs|cjs|md|json|yaml)$|^\.ci\//.test(path) && path !== 'package-lock.json',
);

/** Words that may not stay, each with its remedy. This file is the one place that may name them. */
const BANNED: readonly (readonly [RegExp, string])[] = [
  [/\b(FIXME|XXX|HACK)\b/, 'mend it, or say in a comment what is so and why'],
  [/\bTODO\b/, 'list what is not served where users look (docs/apis.md, skipped.ts)'],
  [
    /registry\.npmjs\.org|pypi\.org|repo1?\.maven/,
    'no registry host names: clients know where to look',
  ],
  [/(^|[\s'"`(])\/(work|root)\//, "no machine's paths"],
  [/\.only\(|\bdebugger\b/, 'left over from debugging'],
];

describe('tidy', () => {
  test('no banned words', () => {
    const found: string[] = [];
    for (const path of texts) {
      if (path === 'test/tidy.test.ts') continue;
      for (const [index, line] of read(path).split('\n').entries()) {
        for (const [pattern, remedy] of BANNED) {
          if (pattern.test(line))
            found.push(`${path}:${index + 1}: ${line.trim().slice(0, 80)} (${remedy})`);
        }
      }
    }
    expect(found).toEqual([]);
  });

  test('every source file opens with what it is for', () => {
    const bare = source.filter((path) => !/^(\/\/|\/\*\*|#!)/.test(read(path)));
    expect(bare, 'add a header: what for, what not').toEqual([]);
  });

  test('no default exports in sources', () => {
    expect(source.filter((path) => /^export default /m.test(read(path)))).toEqual([]);
  });

  test('no file past 900 lines (past 500, look again)', () => {
    const long = code.filter((path) => read(path).split('\n').length > 900);
    expect(long, 'a file this long has grown tangled: redesign it').toEqual([]);
  });

  test('links in the documentation lead somewhere', () => {
    const broken: string[] = [];
    for (const path of tracked.filter((name) => name.endsWith('.md'))) {
      for (const [, target] of read(path).matchAll(
        /\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)/g,
      )) {
        if (!existsSync(join(root, normalize(join(dirname(path), target!)))))
          broken.push(`${path} → ${target}`);
      }
    }
    expect(broken).toEqual([]);
  });

  test('decision records are numbered without gaps', () => {
    const numbers = tracked
      .filter((path) => /^docs\/decisions\/\d{4}-/.test(path))
      .map((path) => Number(/(\d{4})-/.exec(path)![1]))
      .sort((a, b) => a - b);
    expect(numbers).toEqual(numbers.map((_, index) => index));
  });

  test('dependencies are pinned exactly', () => {
    const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<
      string,
      Record<string, string>
    >;
    const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(
      ([, version]) => !/^\d/.test(version),
    );
    expect(loose).toEqual([]);
  });
});

import { expect, test } from 'vitest';
import { judge } from './check-server.ts';

/** A server as it should be. */
const GOOD = {
  version: 160_004,
  version_text: '16.4',
  recovery: false,
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  standby_names: '',
  encoding: 'UTF8',
  max_connections: 100,
  standbys: 0,
};

test('a server as it should be passes', () => {
  expect(judge(GOOD)).toEqual([]);
});

test.each([
  ['an old server', { version: 130_011, version_text: '13.11' }, /^upgrade/],
  ['a standby', { recovery: true }, /name the primary/],
  ['no fsync', { fsync: 'off' }, /set fsync = on/],
  ['torn pages', { full_page_writes: 'off' }, /set full_page_writes = on/],
  ['commits before the disk', { synchronous_commit: 'off' }, /ALTER DATABASE/],
  ['another encoding', { encoding: 'LATIN1' }, /UTF8/],
])('%s is refused', (_what, fact, remedy) => {
  const findings = judge({ ...GOOD, ...fact });
  expect(findings).toMatchObject([{ severity: 'refused' }]);
  expect(findings[0]!.remedy).toMatch(remedy);
});

test.each([
  ['standbys that stream asynchronously', { standbys: 2 }],
  ['commits that skip the standby', { standby_names: 'ANY 1 (*)', synchronous_commit: 'local' }],
])('%s are a warning', (_what, fact) => {
  expect(judge({ ...GOOD, ...fact })).toMatchObject([{ severity: 'warning' }]);
});

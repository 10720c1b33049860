import { expect, test } from 'vitest';
import { isConnectionLost, postgresError, sqlState } from './errors.ts';

const failure = (code: string) => Object.assign(new Error(`it says ${code}`), { code });

test.each([
  ['EPIPE', 'unavailable', true],
  ['ECONNRESET', 'unavailable', true],
  ['57P01', 'unavailable', true],
  ['40001', 'unavailable', false],
  ['FL001', 'corrupt', false],
  ['23505', 'internal', false],
])('%s before COMMIT is %s; the connection is lost: %s', (code, means, lost) => {
  expect(postgresError(failure(code), 'a commit').code).toBe(means);
  expect(isConnectionLost(failure(code))).toBe(lost);
});

test('a connection that breaks under COMMIT leaves its outcome unknown, however the system names it', () => {
  expect(sqlState(failure('EPIPE'))).toBeUndefined();
  expect(postgresError(failure('EPIPE'), 'a commit', 'commit').code).toBe('timeout');
});

import { expect, test } from 'vitest';
import { errorFromShape, errorToShape, FloeError, isFloeError } from './error.ts';

const system = (code: string) => Object.assign(new Error(`${code}: it happened`), { code });

test.each([
  ['ENOENT', 'not-found'],
  ['ENOSPC', 'exhausted'],
  ['ECONNREFUSED', 'unavailable'],
  ['ETIMEDOUT', 'timeout'],
  ['EWHATEVER', 'internal'],
] as const)('%s is %s', (code, expected) => {
  const error = FloeError.from(system(code), 'reading orders');
  expect(error).toMatchObject({ code: expected, message: `reading orders: ${code}: it happened` });
  expect(error.cause).toBeInstanceOf(Error);
});

test('a FloeError passes through unchanged', () => {
  const error = new FloeError('conflict', 'somebody was first');
  expect(FloeError.from(error, 'ignored')).toBe(error);
});

test('anything thrown becomes one, also what is no Error', () => {
  expect(FloeError.from('text')).toMatchObject({ code: 'internal', message: 'text' });
  expect(FloeError.from(new DOMException('gone', 'AbortError')).code).toBe('cancelled');
});

test('errors cross borders as plain data', () => {
  const error = new FloeError('exhausted', 'too many', { details: { limit: 5 } });
  const copy = errorFromShape(structuredClone(errorToShape(error)));
  expect(copy).toMatchObject({ code: 'exhausted', message: 'too many', details: { limit: 5 } });
  expect(isFloeError(copy, 'conflict', 'exhausted')).toBe(true);
  expect(isFloeError(copy, 'conflict')).toBe(false);
});

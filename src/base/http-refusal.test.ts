import { expect, test } from 'vitest';
import { httpRefusal } from './http-refusal.ts';

const request = { contentType: 'text/plain', accepts: 'application/json', body: '{"a": 1}' };
const refused = (code: string, statusCode: number) =>
  httpRefusal(Object.assign(new Error('as it was'), { code, statusCode }), request);

test('a refusal names thing, value and remedy', () => {
  expect(refused('FST_ERR_CTP_INVALID_MEDIA_TYPE', 415)).toEqual({
    status: 415,
    message: 'Content-Type "text/plain" is not read here: send application/json',
  });
  expect(refused('FST_ERR_CTP_INVALID_JSON_BODY', 400)?.message).toBe(
    'the body is not JSON: send {"a": 1}',
  );
  expect(refused('SOMETHING', 404)).toEqual({ status: 404, message: 'as it was' });
});

test('what is not the caller’s fault is none', () => {
  expect(refused('FST_ERR', 500)).toBeUndefined();
  expect(httpRefusal(new Error('x'), request)).toBeUndefined();
});

import { expect, test } from 'vitest';
import { formatAddress, parseAddress } from './address.ts';

test.each([
  ['127.0.0.1:9092', '127.0.0.1', 9092],
  ['localhost:0', 'localhost', 0],
  [':8080', '127.0.0.1', 8080],
  ['9092', '127.0.0.1', 9092],
  ['[::1]:9092', '::1', 9092],
])('%s', (text, host, port) => {
  expect(parseAddress('--kafka', text)).toEqual({ host, port });
});

test.each(['', 'localhost', 'a:b', '1.2.3.4:70000', 'host:1:2'])(
  '"%s" is refused by name',
  (text) => {
    expect(() => parseAddress('--kafka', text)).toThrow(/--kafka: ".*" is not HOST:PORT/);
  },
);

test('IPv6 keeps its brackets', () => {
  expect(formatAddress({ host: '::1', port: 1 })).toBe('[::1]:1');
});

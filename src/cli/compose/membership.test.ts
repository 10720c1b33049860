// Where other nodes reach this one.
import { expect, test } from 'vitest';
import { reachableUrl } from './membership.ts';

const listeners = { PLAINTEXT: { host: 'kafka.example', port: 9092 } };
const address = '0.0.0.0:8080';

test.each([
  ['', 'http://kafka.example:8080'],
  ['face.example:80', 'http://face.example:80'],
  ['[::1]:80', 'http://[::1]:80'],
])('told "%s": %s', (told, url) => {
  expect(reachableUrl('http', { address, told }, listeners)).toBe(url);
});

test('an address that is none is refused by its name', () => {
  expect(() => reachableUrl('http', { address, told: 'face:99999' }, listeners)).toThrow(
    'cluster.http.advertised: "face:99999" is not HOST:PORT',
  );
});

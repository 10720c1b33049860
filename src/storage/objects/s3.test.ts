// The S3 store against a real server: one that is given (FLOE_S3_ENDPOINT) or can be started at once (what
// `npm run test:s3` installed); without either the suite says so and is skipped.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import { startS3, TEST_ACCESS_KEY, TEST_SECRET_KEY } from '../../../test/s3/server.ts';
import { systemClock } from '../../base/clock.ts';
import { noMetrics } from '../../base/metrics.ts';
import { systemIds, systemPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { objectStoreContract } from './contract.ts';
import { openObjectStore } from './open.ts';
import { probeConditionalWrites } from './probe.ts';
import { S3ObjectStore } from './s3.ts';
import { s3Error } from './s3-errors.ts';
import { cutParts } from './s3-multipart.ts';
import { objectSettings } from './settings.ts';

const server = await startS3();
if (server === undefined)
  console.warn('S3 suite skipped: no server. `npm run test:s3` installs one.');
afterAll(() => server?.stop());

const settingsFor = (endpoint: string, more: Record<string, string> = {}) =>
  resolveSettings(objectSettings, {
    's3.endpoint': endpoint,
    's3.access.key.id': TEST_ACCESS_KEY,
    's3.secret.access.key': TEST_SECRET_KEY,
    ...more,
  });

describe.skipIf(server === undefined)('with a server', () => {
  objectStoreContract({
    name: 'S3',
    async make() {
      const bucket = await server!.bucket();
      return new S3ObjectStore(
        { bucket, prefix: 'some/prefix' },
        settingsFor(server!.endpoint, { 's3.part.bytes': String(5 * 1024 * 1024) }),
        systemClock,
      );
    },
  });

  test('pages of a listing and of a deletion follow one another', async () => {
    const bucket = await server!.bucket();
    const store = new S3ObjectStore(
      { bucket, prefix: '' },
      settingsFor(server!.endpoint),
      systemClock,
    );
    const keys = Array.from({ length: 35 }, (_, n) => `p/${String(n).padStart(5, '0')}`);
    await Promise.all(keys.map((key) => store.put(key, Buffer.from('x'))));
    const found: string[] = [];
    for await (const { key } of store.list('p/')) found.push(key);
    expect(found).toEqual(keys);
    // More than one delete request takes, the existing keys last.
    await store.delete([...Array.from({ length: 1_000 }, (_, n) => `q/${n}`), ...keys]);
    for await (const { key } of store.list('')) expect(key).toBeUndefined();
  });

  test('the start-up probe passes and leaves nothing', async () => {
    const bucket = await server!.bucket();
    const store = await openObjectStore(`s3://${bucket}/root/`, {
      clock: systemClock,
      prng: systemPrng,
      ids: systemIds,
      metrics: noMetrics,
      settings: settingsFor(server!.endpoint),
    });
    expect(store.uri).toBe(`s3://${bucket}/root`);
    await probeConditionalWrites(store, 'probe/1');
    expect(await store.head('probe/1')).toBeUndefined();
  });

  test('a bucket that is not there is said so', async () => {
    const store = new S3ObjectStore(
      { bucket: 'floe-no-such-bucket', prefix: '' },
      settingsFor(server!.endpoint),
      systemClock,
    );
    await expect(store.put('a', Buffer.from('x'))).rejects.toMatchObject({ code: 'invalid' });
  });
});

test('nobody listens: a put was not done, and may be retried', async () => {
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
  const { port } = free.address() as AddressInfo;
  await new Promise((resolve) => free.close(resolve));
  const store = new S3ObjectStore(
    { bucket: 'b', prefix: '' },
    settingsFor(`http://127.0.0.1:${port}`),
    systemClock,
  );
  await expect(store.put('a', Buffer.from('x'))).rejects.toMatchObject({ code: 'unavailable' });
  await expect(store.get('a')).rejects.toMatchObject({ code: 'unavailable' });
});

test('a put without an answer is unknown, a get without one can be asked again', async () => {
  const deaf = createServer(() => {});
  await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve));
  const { port } = deaf.address() as AddressInfo;
  const store = new S3ObjectStore(
    { bucket: 'b', prefix: '' },
    settingsFor(`http://127.0.0.1:${port}`, { 's3.request.timeout.ms': '150' }),
    systemClock,
  );
  await expect(store.put('a', Buffer.from('x'))).rejects.toMatchObject({ code: 'timeout' });
  await expect(store.get('a')).rejects.toMatchObject({ code: 'unavailable' });
  const stopped = store.get('a', { signal: AbortSignal.timeout(20) });
  await expect(stopped).rejects.toMatchObject({ code: 'cancelled' });
  deaf.closeAllConnections();
  await new Promise((resolve) => deaf.close(resolve));
});

test.each([
  ['put', { name: 'PreconditionFailed', status: 412 }, 'conflict'],
  ['put', { name: 'ConditionalRequestConflict', status: 409 }, 'unavailable'],
  ['put', { name: 'InternalError', status: 500 }, 'timeout'],
  ['put', { name: 'SlowDown', status: 503 }, 'unavailable'],
  ['put', { name: 'EntityTooLarge', status: 400 }, 'invalid'],
  ['put', { name: 'Error', code: 'ECONNRESET' }, 'timeout'],
  [
    'put',
    { name: 'TimeoutError', message: 'Connection timed out after 10 ms, connect' },
    'unavailable',
  ],
  ['get', { name: 'InternalError', status: 500 }, 'unavailable'],
  ['get', { name: 'NoSuchKey', status: 404 }, 'not-found'],
  ['get', { name: 'NoSuchBucket', status: 404 }, 'invalid'],
  ['get', { name: 'Error', code: 'ECONNRESET' }, 'unavailable'],
  ['list', { name: 'AccessDenied', status: 403 }, 'unauthorized'],
  ['delete', { name: 'NotImplemented', status: 501 }, 'unsupported'],
] as const)('%s answered by %o is %s', (operation, answer, code) => {
  const { status, ...rest } = { status: undefined, ...answer };
  const error = { ...rest, $metadata: status === undefined ? {} : { httpStatusCode: status } };
  expect(s3Error(error, { operation, key: 'k', late: false }).code).toBe(code);
});

test('pieces have exactly the size asked for', () => {
  const parts = [3, 0, 10, 1, 6].map((length, n) => new Uint8Array(length).fill(n));
  const pieces = cutParts(parts, 4).map((piece) => Buffer.concat(piece));
  expect(pieces.map((piece) => piece.length)).toEqual([4, 4, 4, 4, 4]);
  expect(Buffer.concat(pieces).equals(Buffer.concat(parts))).toBe(true);
  expect(cutParts([new Uint8Array(9)], 4).map((piece) => piece[0]!.length)).toEqual([4, 4, 1]);
});

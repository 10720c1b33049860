// Requests that leave without the SDK: signed as the S3 reference and the SDK's signer say, sent where the SDK's rules of
// endpoints say, and refusals told in the SDK's shape.
import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { S3Client } from '@aws-sdk/client-s3';
import { SignatureV4 } from '@smithy/signature-v4';
import { expect, onTestFinished, test, vi } from 'vitest';
import { dateAt, ManualClock } from '../../base/clock.ts';
import { resolveSettings } from '../../base/settings.ts';
import { BodyPool } from './body-pool.ts';
import { S3ObjectStore } from './s3.ts';
import { sha256Hex, signedHeaders, UNSIGNED_PAYLOAD } from './s3-sign.ts';
import { encodeKey, placeOf } from './s3-wire.ts';
import { objectSettings } from './settings.ts';

const KEYS = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
};
const SCOPE = { region: 'us-east-1', service: 's3' };
const MAY_24_MS = dateAt(0).setUTCFullYear(2013, 4, 24);

test('signatures are those of the examples in the S3 reference', () => {
  const by = { keys: KEYS, scope: SCOPE, nowMs: MAY_24_MS };
  const host = 'examplebucket.s3.amazonaws.com';
  const get = signedHeaders(
    {
      method: 'GET',
      path: '/test.txt',
      headers: { host, range: 'bytes=0-9', 'x-amz-content-sha256': sha256Hex([]) },
    },
    by,
  );
  expect(get['authorization']).toContain(
    'Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  );
  const put = signedHeaders(
    {
      method: 'PUT',
      path: `/${encodeKey('test$file.text')}`,
      headers: {
        host,
        date: 'Fri, 24 May 2013 00:00:00 GMT',
        'x-amz-storage-class': 'REDUCED_REDUNDANCY',
        'x-amz-content-sha256': sha256Hex([Buffer.from('Welcome to '), Buffer.from('Amazon S3.')]),
      },
    },
    by,
  );
  expect(put['authorization']).toContain(
    'Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  );
});

class Sha256 {
  readonly #hash;
  constructor(secret?: Parameters<typeof createHmac>[1]) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret);
  }
  update(data: Uint8Array): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
}

test('the SDK’s signer agrees, whatever the key is called and whoever signs', async () => {
  const keys = { ...KEYS, sessionToken: 'tok/en==' };
  const scope = { region: 'eu-central-1', service: 's3' };
  const signer = new SignatureV4({
    ...scope,
    credentials: keys,
    sha256: Sha256 as never,
    uriEscapePath: false,
    applyChecksum: false,
  });
  for (const key of [
    'plain/key',
    "it's (a) *key*!",
    'smörgås/日本/🙂',
    'a+b=c&d~e_f-g.h@i:j,k;l',
  ]) {
    const request = {
      method: 'PUT',
      path: `/bucket/${encodeKey(key)}`,
      headers: { host: 'x:9000', 'if-none-match': '*', 'x-amz-content-sha256': UNSIGNED_PAYLOAD },
    };
    const ours = signedHeaders(request, { keys, scope, nowMs: MAY_24_MS });
    const theirs = await signer.sign(
      { ...request, protocol: 'http:', hostname: 'x', port: 9000 },
      { signingDate: dateAt(MAY_24_MS) },
    );
    expect(ours['authorization']).toBe(theirs.headers['authorization']);
    expect(ours['x-amz-security-token']).toBe('tok/en==');
  }
});

test.each([
  ['bucket', {}, 'https bucket.s3.eu-west-1.amazonaws.com /'],
  ['dotted.bucket', {}, 'https s3.eu-west-1.amazonaws.com /dotted.bucket/'],
  ['bucket', { useDualstackEndpoint: true }, 'https bucket.s3.dualstack.eu-west-1.amazonaws.com /'],
  ['bucket', { endpoint: 'http://h:9000', forcePathStyle: true }, 'http h:9000 /bucket/'],
  ['bucket', { endpoint: 'https://h' }, 'https bucket.h /'],
])('objects of %s, %o, lie at %s', async (bucket, more, expected) => {
  const client = new S3Client({ region: 'eu-west-1', credentials: KEYS, ...more });
  const { secure, hostname, port, path, scope } = (await placeOf(client, bucket))!;
  const host = port === undefined ? hostname : `${hostname}:${port}`;
  expect(`${secure ? 'https' : 'http'} ${host} ${path}`).toBe(expected);
  expect(scope).toEqual({ region: 'eu-west-1', service: 's3' });
});

test('a directory bucket, whose requests take a session, is left to the SDK', async () => {
  const client = new S3Client({ region: 'us-east-1', credentials: KEYS });
  expect(await placeOf(client, 'floe--use1-az4--x-s3')).toBeUndefined();
});

/** A store at a server, which ends with the test. */
async function storeAt(server: Server): Promise<S3ObjectStore> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const settings = resolveSettings(objectSettings, {
    's3.endpoint': `http://127.0.0.1:${port}`,
    's3.access.key.id': 'k',
    's3.secret.access.key': 's',
  });
  return new S3ObjectStore({ bucket: 'b', prefix: '' }, settings, new ManualClock(0));
}

/** Memory as that of slabs. */
const shared = (bytes: number) => new Uint8Array(new SharedArrayBuffer(bytes));

/** A server that keeps what it is asked; `answer` gives status, headers and body by turn. */
async function listening(
  ...answers: { status: number; headers?: Record<string, string>; text?: string }[]
) {
  const asked: {
    method: string;
    url: string;
    headers: IncomingMessage['headers'];
    body: Buffer;
    /** The client's end of the connection. */
    from: number | undefined;
  }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', url = '', headers, socket } = request;
    asked.push({ method, url, headers, body: Buffer.concat(chunks), from: socket.remotePort });
    const { status, headers: given = {}, text = '' } = answers.shift() ?? { status: 200 };
    response.writeHead(status, given).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const open = (more: Record<string, string> = {}) =>
    new S3ObjectStore(
      { bucket: 'b', prefix: 'p' },
      resolveSettings(objectSettings, {
        's3.endpoint': `http://127.0.0.1:${port}`,
        's3.access.key.id': 'k',
        's3.secret.access.key': 's',
        ...more,
      }),
      new ManualClock(MAY_24_MS),
    );
  return { asked, open };
}

test('a put carries its CRC32, its condition and its parts in order', async () => {
  const { asked, open } = await listening();
  const parts = [Buffer.from('123'), Buffer.from('456789')];
  await open().put('a b/c', parts, { ifNoneMatch: true, contentType: 'text/plain' });
  const [{ method, url, headers, body }] = asked as [(typeof asked)[0]];
  expect([method, url, body.toString()]).toEqual(['PUT', '/b/p/a%20b/c', '123456789']);
  expect(headers).toMatchObject({
    // The check value of CRC-32, 0xcbf43926.
    'x-amz-checksum-crc32': 'y/Q5Jg==',
    'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
    'content-length': '9',
    'content-type': 'text/plain',
    'if-none-match': '*',
  });
  expect(headers['authorization']).toContain('SignedHeaders=content-length;content-type;host;if-');
});

test('large parts are sent as they are, small ones and what is encrypted put together', async () => {
  const { asked, open } = await listening();
  const join = vi.spyOn(BodyPool.prototype, 'join');
  onTestFinished(() => join.mockRestore());
  const large = [1, 2, 3].map((byte) => shared(100_000 + byte).fill(byte));
  const small = [4, 5].map((byte) => shared(byte).fill(byte));
  await open().put('a', large);
  expect(join).not.toHaveBeenCalled();
  await open().put('a', small);
  expect(join).toHaveBeenCalledTimes(1);
  expect(asked.map(({ body }) => body)).toEqual([Buffer.concat(large), Buffer.concat(small)]);
  // Nobody listens with TLS.
  const encrypted = open({ 's3.endpoint': 'https://127.0.0.1:1' });
  await expect(encrypted.put('a', large)).rejects.toMatchObject({ code: 'unavailable' });
  expect(join).toHaveBeenCalledTimes(2);
});

test('of a put that is given up nothing is sent any more, whatever becomes of its memory', async () => {
  const begun = Promise.withResolvers<IncomingMessage>();
  // What is not read fills the buffers on the way: most of the body is still to be sent.
  const server = createServer((request) => begun.resolve(request));
  const store = await storeAt(server);
  const over = new AbortController();
  const parts = Array.from({ length: 15 }, () => shared(1024 * 1024).fill(1));
  const put = store.put('a', parts, { signal: over.signal });
  put.catch(() => {});
  const request = await begun.promise;
  over.abort();
  await expect(put).rejects.toMatchObject({ code: 'cancelled' });
  for (const part of parts) part.fill(2);
  let received = 0;
  let foreign = 0;
  request.on('data', (chunk: Buffer) => {
    received += chunk.length;
    if (chunk.includes(2)) foreign += 1;
  });
  await new Promise((resolve) => request.once('close', resolve).on('error', () => {}));
  expect(received).toBeGreaterThan(0);
  expect(received).toBeLessThan(15 * 1024 * 1024);
  expect(foreign).toBe(0);
});

test('a connection is used again, though whoever asked gives up what is over', async () => {
  const { asked, open } = await listening({ status: 200, text: 'longer than nothing' });
  const store = open();
  // As flushes do, once one of their attempts has won.
  const once = async (request: (signal: AbortSignal) => Promise<unknown>) => {
    const over = new AbortController();
    await request(over.signal).catch(() => {});
    over.abort();
  };
  await once((signal) => store.put('a', Buffer.from('x'), { signal }));
  await once((signal) => store.put('b', Buffer.from('x'), { signal }));
  await once((signal) => store.get('a', { signal }));
  await once((signal) => store.put('c', Buffer.from('x'), { signal }));
  expect(asked.map(({ from }) => from)).toEqual(Array(4).fill(asked[0]!.from));
});

test('with s3.sign.payload the body’s hash is signed', async () => {
  const { asked, open } = await listening();
  await open({ 's3.sign.payload': 'true' }).put('a', Buffer.from('Welcome to Amazon S3.'));
  expect(asked[0]!.headers['x-amz-content-sha256']).toBe(
    '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
  );
});

test('a refusal is told by its code; after one for the clock the store’s time is signed', async () => {
  const { asked, open } = await listening(
    { status: 500, text: '<Error><Code>InternalError</Code><Message>so be it</Message></Error>' },
    { status: 418, text: 'no XML' },
    {
      status: 403,
      headers: { date: 'Fri, 24 May 2013 01:00:00 GMT' },
      text: '<Error><Code>RequestTimeTooSkewed</Code></Error>',
    },
  );
  const store = open();
  const refused = (code: string, message: RegExp) =>
    expect(store.put('a', Buffer.from('x'))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  await refused('timeout', /InternalError 500: so be it/);
  await refused('invalid', /418: no XML/);
  await refused('unavailable', /RequestTimeTooSkewed/);
  await store.put('a', Buffer.from('x'));
  expect(asked.map(({ headers }) => headers['x-amz-date'])).toEqual([
    '20130524T000000Z',
    '20130524T000000Z',
    '20130524T000000Z',
    '20130524T010000Z',
  ]);
});

test('a put that is refused before its body has arrived stops sending it', async () => {
  const server = createServer((request, response) => {
    response.writeHead(503).end('<Error><Code>SlowDown</Code></Error>');
    request.pause();
  });
  const store = await storeAt(server);
  const closed = new Promise((resolve) =>
    server.once('connection', (socket) => socket.once('close', resolve)),
  );
  const body = Buffer.alloc(15 * 1024 * 1024);
  await expect(store.put('a', body)).rejects.toMatchObject({ code: 'unavailable' });
  await closed;
});

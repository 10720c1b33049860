import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { apiVersionsApi } from '../protocol/messages/18-api-versions.ts';
import { withWire } from './wire-client.ts';

test('whoever asks by a connection that the server has closed is told so', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const asking = withWire(`127.0.0.1:${port}`, async (client) => {
    const [socket] = await accepted;
    const first = client.ask(apiVersionsApi, {}, 0);
    socket.resume();
    socket.end();
    await expect(first).rejects.toMatchObject({ code: 'unavailable' });
    return client.ask(apiVersionsApi, {}, 0);
  });
  await expect(asking).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining(`127.0.0.1:${port}`),
  });
  server.close();
});

test.each([
  ['HTTP', 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'],
  ['a TLS alert', '\x15\x03\x03\x00\x02\x02\x28'],
  ['SSH', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ['a frame of something else', '\0\0\0\x09\0\0\0\x01other'],
])('an answer in %s is one clear error that names the server', async (_, said) => {
  const server = createServer((socket) => socket.on('error', () => {}).write(said, 'latin1'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const asking = withWire(`127.0.0.1:${port}`, (client) => client.ask(apiVersionsApi, {}, 0));
  await expect(asking).rejects.toMatchObject({
    code: 'invalid',
    message: `what answers at 127.0.0.1:${port} doesn't speak Kafka's protocol: --server is the Kafka address`,
  });
  server.close();
});

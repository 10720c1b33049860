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

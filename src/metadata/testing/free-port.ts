// A port that nobody listens on, for servers of tests that can't choose one themselves.
import { type AddressInfo, createServer } from 'node:net';

/** On 127.0.0.1; somebody else may take it before the caller does. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

// A TCP relay before an object store that can be slowed down or cut off: storage as it is on a bad day.
import { createConnection, createServer, type Socket } from 'node:net';

export interface SlowProxy {
  readonly endpoint: string;
  /** Every piece of a request waits so long; `Infinity`: nothing gets through. */
  delayMs: number;
  stop(): void;
}

export async function slowProxy(target: string): Promise<SlowProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = createConnection({ host: hostname, port: Number(port) });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.once('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
      socket.on('error', () => {});
    }
    upstream.pipe(client);
    client.on('data', (piece) => {
      client.pause();
      const pass = () => {
        if (proxy.delayMs === Infinity) {
          setTimeout(pass, 100);
          return;
        }
        upstream.write(piece);
        client.resume();
      };
      setTimeout(pass, Number.isFinite(proxy.delayMs) ? proxy.delayMs : 100);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const proxy: SlowProxy = {
    endpoint: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    delayMs: 0,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
  return proxy;
}

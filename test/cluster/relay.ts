// A TCP relay before a server that can be slowed down, cut off, or made deaf in one direction: a network as it is on a
// bad day. What is held back is passed on when the trouble ends, as TCP would, unless the connection was reset.
import { createConnection, createServer, type Socket } from 'node:net';

export interface Trouble {
  /** Every piece on its way to the server waits so long; Infinity: nothing gets through. Default 0. */
  readonly toServerMs?: number;
  /** The same for what comes back. */
  readonly toClientMs?: number;
}

export interface Relay {
  readonly host: '127.0.0.1';
  readonly port: number;
  /** From now on; {} ends it. */
  trouble: Trouble;
  /** Breaks every connection off. */
  reset(): void;
  stop(): void;
}

/** How often it is asked whether a cut is over. */
const LOOK_MS = 50;

/** @param port where it listens; 0: anywhere. */
export async function startRelay(
  target: { readonly host: string; readonly port: number },
  port = 0,
): Promise<Relay> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = createConnection(target);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.once('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
      socket.on('error', () => {});
    }
    upstream.once('connect', () => {
      forward(client, upstream, () => relay.trouble.toServerMs ?? 0);
      forward(upstream, client, () => relay.trouble.toClientMs ?? 0);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const relay: Relay = {
    host: '127.0.0.1',
    port: (server.address() as { port: number }).port,
    trouble: {},
    reset() {
      for (const socket of sockets) socket.destroy();
    },
    stop() {
      server.close();
      relay.reset();
    },
  };
  return relay;
}

function forward(from: Socket, to: Socket, delayMs: () => number): void {
  from.on('data', (piece) => {
    const started = performance.now();
    const pass = () => {
      const left = started + delayMs() - performance.now();
      if (left > 0) {
        setTimeout(pass, Math.min(left, LOOK_MS));
        return;
      }
      if (to.write(piece)) from.resume();
      else to.once('drain', () => from.resume());
    };
    from.pause();
    pass();
  });
  from.once('end', () => to.end());
}

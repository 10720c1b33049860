// TCP between nodes: the only file of the cluster that opens sockets. Frames are tiny, so Nagle is off; a peer that went
// without a word is noticed by keep-alive. Not for: what the bytes mean.
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { FloeError } from '../../base/error.ts';
import type { NodeEndpoint } from '../../metadata/nodes.ts';

const KEEP_ALIVE_MS = 10_000;
const BACKLOG = 128;

/** One connection. */
export interface HintWire {
  readonly remote: string;
  /** `sent` is called once the bytes have left this process; not at all when the connection ends before. */
  send(bytes: Uint8Array, sent?: () => void): void;
  close(): void;
}

export interface WireEvents {
  received(chunk: Uint8Array): void;
  /** Once, whoever ended it; with what went wrong. */
  closed(error: Error | undefined): void;
}

/** @throws FloeError `conflict` when the port is taken. */
export async function listenForHints(
  { host, port }: NodeEndpoint,
  accept: (wire: HintWire) => WireEvents | undefined,
): Promise<NodeEndpoint & { close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true, keepAlive: true }, (socket) => {
    const events = accept(wireOf(socket));
    if (events === undefined) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    attach(socket, events);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (caught) =>
      reject(FloeError.from(caught, `cluster.hints.listen: cannot listen on ${host}:${port}`)),
    );
    server.listen({ host, port, backlog: BACKLOG }, resolve);
  });
  server.on('error', () => {});
  return {
    host,
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** Connects; `opened` is called once the peer has accepted. */
export function connectForHints(
  { host, port }: NodeEndpoint,
  events: WireEvents & { opened(): void },
): HintWire {
  const socket = createConnection({ host, port, noDelay: true, keepAlive: true });
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  socket.on('connect', () => events.opened());
  attach(socket, events);
  return wireOf(socket);
}

function attach(socket: Socket, events: WireEvents): void {
  let failure: Error | undefined;
  socket.on('data', (chunk) => events.received(chunk as Buffer));
  socket.on('error', (error) => {
    failure = error;
  });
  socket.on('close', () => events.closed(failure));
}

function wireOf(socket: Socket): HintWire {
  return {
    remote: socket.remoteAddress ?? '',
    send(bytes, sent) {
      if (!socket.destroyed) socket.write(bytes, (error) => error ?? sent?.());
    },
    close: () => void socket.destroy(),
  };
}

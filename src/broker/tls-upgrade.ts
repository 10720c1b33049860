// TLS over sockets that are accepted, counted and admitted already: so limits on connections hold before a handshake
// costs anything, and a flood of half-open handshakes can't pass them.
// Not for: listening and limits (server.ts), keys and certificates (auth/).
import type { Socket } from 'node:net';
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls';

export interface TlsUpgradeOptions {
  readonly material: TlsOptions;
  readonly handshakeTimeoutMs: number;
  onHandshakeFailed(peer: string | undefined, error: Error): void;
}

interface Handshake {
  readonly socket: Socket;
  readonly secured: (socket: TLSSocket) => void;
}

export class TlsUpgrade {
  /** Never listens: sockets are handed to it. */
  readonly #server: ReturnType<typeof createServer>;
  /** Handshakes under way by the peer's address and port, which both ends of the upgrade know. */
  readonly #handshakes = new Map<string, Handshake>();

  constructor({ material, handshakeTimeoutMs, onHandshakeFailed }: TlsUpgradeOptions) {
    this.#server = createServer({
      ...material,
      noDelay: true,
      handshakeTimeout: handshakeTimeoutMs,
    });
    this.#server.on('secureConnection', (socket) => {
      const handshake = this.#take(peerOf(socket));
      if (handshake === undefined) socket.destroy();
      else handshake.secured(socket);
    });
    this.#server.on('tlsClientError', (error, socket) => {
      onHandshakeFailed(socket.remoteAddress, error);
      socket.destroy();
    });
  }

  /** For handshakes from now on; connections go on with the certificate they began with. */
  use(material: TlsOptions): void {
    this.#server.setSecureContext(material);
  }

  /** Calls back once: with the secured socket, or with none when the handshake fails or the peer goes away. */
  upgrade(socket: Socket, done: (secured: TLSSocket | undefined) => void): void {
    const peer = peerOf(socket);
    const handshake = { socket, secured: done };
    this.#handshakes.set(peer, handshake);
    socket.on('error', () => {});
    socket.once('close', () => {
      if (this.#handshakes.get(peer) !== handshake) return;
      this.#handshakes.delete(peer);
      done(undefined);
    });
    this.#server.emit('connection', socket);
  }

  /** Ends the handshakes under way. */
  destroy(): void {
    for (const { socket } of this.#handshakes.values()) socket.destroy();
  }

  #take(peer: string): Handshake | undefined {
    const handshake = this.#handshakes.get(peer);
    this.#handshakes.delete(peer);
    return handshake;
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;

// Kafka sockets: listeners, limits on connections, timeouts, graceful stop. The only file that opens them.
// A plain socket reads straight into the buffer that its connection names, which saves an allocation and a copy
// per read: it takes over the accepted handle and uses net.Socket's `onread`. TLS sockets, and a Node without
// that handle, hand over chunks instead, which are copied where a frame spans them.
// Not for: what the bytes mean (connection.ts).
import { type AddressInfo, createServer, type Server, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { assert } from '../base/assert.ts';
import type { Timer } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import { subjectName } from './auth/principal-mapping.ts';
import { Session } from './auth/session.ts';
import { Connection, type ConnectionShared } from './connection.ts';
import { type ConnectionLimits, plainAddress, type RefusalReason } from './quotas/index.ts';
import { TlsUpgrade } from './tls-upgrade.ts';
import type { Wire } from './wire.ts';

export interface ListenerOptions {
  /** Kafka's name of the listener, e.g. PLAINTEXT. */
  readonly name: string;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
}

export interface BoundListener {
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

/** How often idle and stuck connections are looked for. */
const CHECK_EVERY_MS = 1_000;

/** How long a closed connection's peer may take to notice, before the socket is destroyed. */
const LINGER_MS = 1_000;

/** How long requests under way get to finish when the broker stops. */
const DRAIN_MS = 5_000;

const BACKLOG = 511;

export class KafkaServer implements Component {
  readonly #shared: ConnectionShared;
  readonly #servers: Server[] = [];
  /** Of the listeners with TLS, by name. */
  readonly #upgrades = new Map<string, TlsUpgrade>();
  readonly #connections = new Set<Connection>();
  readonly #limits: ConnectionLimits;
  /** Sockets that wait for their turn, or to be closed: see connection-limits.ts. */
  readonly #waiting = new Set<Socket>();
  #nextId = 1;
  #check: Timer | undefined;
  #stopping: Promise<void> | undefined;

  constructor(shared: ConnectionShared, limits: ConnectionLimits) {
    this.#shared = shared;
    this.#limits = limits;
    shared.services.metrics.observeGauge(
      'floe_broker_connections',
      'Open client connections',
      () => this.#connections.size,
    );
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Binds one listener. @throws FloeError `conflict` when the port is taken. */
  async listen(options: ListenerOptions): Promise<BoundListener> {
    const onSocket = (socket: Socket) => this.#accept(socket, options.name);
    const server = createServer({ noDelay: true, pauseOnConnect: true }, onSocket);
    this.#secure(options.name);
    await new Promise<void>((resolve, reject) => {
      const fail = (caught: Error) =>
        reject(FloeError.from(caught, `cannot listen on ${options.host}:${options.port}`));
      server.once('error', fail);
      server.listen({ host: options.host, port: options.port, backlog: BACKLOG }, () => {
        server.off('error', fail);
        resolve();
      });
    });
    server.on('error', (caught) => {
      this.#shared.services.logger.error({ error: caught.message }, 'listener failed');
    });
    this.#servers.push(server);
    const { port } = server.address() as AddressInfo;
    return { name: options.name, host: options.host, port };
  }

  /** Prepares TLS for a listener that has it. */
  #secure(listener: string): void {
    const { security, logger } = this.#shared.services;
    const secure = security.listeners.get(listener);
    assert(secure !== undefined, `listener ${listener} has its security`);
    const { tls, auth } = secure;
    if (tls === undefined) return;
    const upgrade = new TlsUpgrade({
      material: tls.material,
      handshakeTimeoutMs: auth.timeoutMs,
      onHandshakeFailed: (peer, { message }) =>
        logger.info({ listener, peer, error: message }, 'TLS handshake failed'),
    });
    tls.onChange((material) => upgrade.use(material));
    this.#upgrades.set(listener, upgrade);
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    // Stops listening at once. Its callback would wait for sockets whose handles were taken over.
    for (const server of this.#servers) server.close();
    for (const socket of this.#waiting) socket.destroy();
    this.#waiting.clear();
    for (const upgrade of this.#upgrades.values()) upgrade.destroy();
    const late = this.#shared.services.clock.setTimer(DRAIN_MS, () => {
      for (const connection of this.#connections) connection.destroy();
    });
    await Promise.all([...this.#connections].map((connection) => connection.drain()));
    late.cancel();
    this.#check?.cancel();
    this.#check = undefined;
    this.#shared.stats.flush();
  }

  #accept(socket: Socket, listener: string): void {
    const address = plainAddress(socket.remoteAddress ?? '');
    const admission =
      this.#stopping === undefined
        ? this.#limits.admit(listener, address)
        : ({ kind: 'refuse', reason: 'broker' } as const);
    if (admission.kind === 'open') this.#admit(socket, listener, address);
    else if (admission.kind === 'refuse') this.#refuse(socket, admission.reason);
    else this.#wait(socket, admission, () => this.#admit(socket, listener, address));
  }

  /** The socket is left alone, unread, until its wait is over. */
  #wait(
    socket: Socket,
    { waitMs, after }: { readonly waitMs: number; readonly after: 'open' | 'close' },
    admit: () => void,
  ): void {
    this.#waiting.add(socket);
    socket.on('error', () => {});
    this.#shared.services.clock.setTimer(waitMs, () => {
      this.#limits.waited();
      if (!this.#waiting.delete(socket)) return;
      if (after === 'open') admit();
      else this.#refuse(socket, 'address-rate');
    });
  }

  #refuse(socket: Socket, reason: RefusalReason): void {
    const help = 'Connections closed by a limit';
    this.#shared.services.metrics.count('floe_broker_connections_refused_total', help, { reason });
    socket.destroy();
  }

  #admit(socket: Socket, listener: string, address: string): void {
    // While a socket waited, others may have taken its place.
    const reason = this.#limits.full(listener, address);
    if (reason !== undefined) {
      this.#refuse(socket, reason);
      return;
    }
    this.#limits.opened(listener, address);
    const { metrics, clock } = this.#shared.services;
    metrics.count('floe_broker_connections_total', 'Connections accepted');
    this.#check ??= clock.setTimer(CHECK_EVERY_MS, () => this.#checkAll());
    const upgrade = this.#upgrades.get(listener);
    if (upgrade === undefined) this.#open(socket, listener, address);
    else {
      upgrade.upgrade(socket, (secured) => {
        if (secured !== undefined) this.#open(secured, listener, address);
        else this.#limits.closed(listener, address);
      });
    }
  }

  /** Undefined when the client is refused for its certificate. */
  #session(socket: Socket, listener: string, host: string): Session | undefined {
    const { services } = this.#shared;
    const { auth } = services.security.listeners.get(listener)!;
    try {
      return new Session({ ...services, listener: auth, host, subject: subjectOf(socket) });
    } catch (caught) {
      const { message } = FloeError.from(caught);
      services.logger.info({ listener, peer: host, error: message }, 'client refused');
      return undefined;
    }
  }

  #open(accepted: Socket, listener: string, address: string): void {
    const shared = this.#shared;
    const session = this.#session(accepted, listener, address);
    if (session === undefined) {
      this.#limits.closed(listener, address);
      accepted.destroy();
      return;
    }
    // Bytes arrive only after the connection is there: reading starts below.
    let connection: Connection | undefined;
    const { socket, start } = readInto(accepted, {
      target: () => connection?.target() ?? shared.landing,
      received: (buffer, length) => connection?.received(buffer, length),
    });
    const wire = new SocketWire(socket, address, () =>
      shared.services.clock.setTimer(LINGER_MS, () => socket.destroy()),
    );
    const opened = new Connection({
      shared,
      wire,
      id: this.#nextId++,
      listener,
      session,
      onClosed: () => this.#closed(opened, address),
    });
    connection = opened;
    this.#connections.add(opened);
    // An error is always followed by 'close'; resets by peers are daily life.
    socket.on('error', () => {});
    socket.on('end', () => socket.destroySoon());
    socket.on('close', () => opened.closed());
    start();
  }

  #closed(connection: Connection, address: string): void {
    this.#connections.delete(connection);
    this.#limits.closed(connection.listener, address);
  }

  #checkAll(): void {
    const nowMs = this.#shared.services.clock.monotonic();
    for (const connection of this.#connections) connection.check(nowMs);
    this.#check =
      this.#connections.size === 0
        ? undefined
        : this.#shared.services.clock.setTimer(CHECK_EVERY_MS, () => this.#checkAll());
  }
}

/** The subject of the certificate that the client showed; undefined without one. @throws FloeError for a bad one. */
function subjectOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  // With ssl.client.auth=requested the handshake goes on in spite of it.
  if (!socket.authorized) {
    throw new FloeError(
      'unauthorized',
      `its certificate is not trusted: ${socket.authorizationError}`,
    );
  }
  return subjectName(certificate.subject);
}

interface Reading {
  target(): Buffer;
  received(buffer: Buffer, length: number): void;
}

interface ReadingSocket {
  readonly socket: Socket;
  start(): void;
}

/** The socket to use in place of `accepted`, set up to read as `reading` wants. */
function readInto(accepted: Socket, reading: Reading): ReadingSocket {
  const owner = accepted as { _handle?: unknown };
  const handle = owner._handle;
  if (!(accepted instanceof Socket) || 'encrypted' in accepted || handle == null) {
    return {
      socket: accepted,
      start() {
        accepted.on('data', (chunk: Buffer) => reading.received(chunk, chunk.length));
        accepted.resume();
      },
    };
  }
  owner._handle = null;
  const options = {
    handle,
    // The handle was paused on accept; `start` reads.
    pauseOnCreate: true,
    onread: {
      buffer: () => reading.target(),
      callback(length: number, buffer: Uint8Array) {
        reading.received(buffer as Buffer, length);
        return true;
      },
    },
  };
  // `handle` is how net.Server itself makes sockets; the types leave it out.
  const socket = new Socket(options as unknown as ConstructorParameters<typeof Socket>[0]);
  return { socket, start: () => void socket.resume() };
}

class SocketWire implements Wire {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly #socket: Socket;
  readonly #linger: () => Timer;
  #writing = false;

  constructor(socket: Socket, remoteAddress: string, linger: () => Timer) {
    this.#socket = socket;
    this.remoteAddress = remoteAddress;
    this.remotePort = socket.remotePort ?? 0;
    this.#linger = linger;
  }

  write(pieces: readonly Uint8Array[], done: (sent: boolean) => void): void {
    assert(!this.#writing, 'one write is under way at a time');
    this.#writing = true;
    const written = (error?: Error | null) => {
      this.#writing = false;
      done(error == null);
    };
    const socket = this.#socket;
    if (pieces.length === 1) {
      socket.write(pieces[0]!, written);
      return;
    }
    socket.cork();
    for (let i = 0; i < pieces.length - 1; i += 1) socket.write(pieces[i]!);
    socket.write(pieces[pieces.length - 1]!, written);
    socket.uncork();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Reads on, into nothing, until the peer has closed too: unread bytes would reset replies on their way. */
  end(): void {
    const timer = this.#linger();
    this.#socket.once('close', () => timer.cancel());
    this.#socket.end();
    this.#socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

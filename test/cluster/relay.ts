// A TCP relay before a server that can be slowed down, cut off, or made deaf in one direction, or that loses the one answer
// that matters: a network as it is on a bad day. What is held back is passed on when the trouble ends, as TCP would,
// unless the connection was reset.
import { createConnection, createServer, type Socket } from 'node:net';

export interface Trouble {
  /** Every piece on its way to the server waits so long; Infinity: nothing gets through. Default 0. */
  readonly toServerMs?: number;
  /** The same for what comes back. */
  readonly toClientMs?: number;
  /** Some answers are lost, their connections with them. */
  readonly lose?: LostAnswers;
}

export interface LostAnswers {
  /** What a piece to the server holds when it asks for such an answer. */
  readonly asked: string;
  /** What tells that the server has done it: from the question to here nothing is passed on, then the connection ends. */
  readonly done: string;
  /** Share of such questions, in (0, 1]. */
  readonly share: number;
  /** In [0, 1). */
  readonly chance: () => number;
  /** Called when an answer is lost, before the client can know. */
  readonly onLost?: () => void;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Relay {
  readonly host: '127.0.0.1';
  readonly port: number;
  /** From now on; {} ends it. */
  trouble: Trouble;
  /** Where new connections go. */
  target: Address;
  /** Breaks every connection off. */
  reset(): void;
  stop(): void;
}

/** How often it is asked whether a cut is over. */
const LOOK_MS = 50;

/** @param port where it listens; 0: anywhere. */
export async function startRelay(target: Address, port = 0): Promise<Relay> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = createConnection(relay.target);
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
      const loss = new Loss();
      forward(client, upstream, {
        delayMs: () => relay.trouble.toServerMs ?? 0,
        passes: (piece) => loss.asked(piece, relay.trouble.lose),
      });
      forward(upstream, client, {
        delayMs: () => relay.trouble.toClientMs ?? 0,
        passes: (piece) => loss.answered(piece, () => client.resetAndDestroy()),
      });
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
    target,
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

/** Of one connection: whether its answer is the one that gets lost. */
class Loss {
  #lost: LostAnswers | undefined;

  asked(piece: Buffer, lose: LostAnswers | undefined): boolean {
    if (lose !== undefined && piece.includes(lose.asked) && lose.chance() < lose.share)
      this.#lost = lose;
    return true;
  }

  answered(piece: Buffer, end: () => void): boolean {
    const lost = this.#lost;
    if (lost === undefined) return true;
    if (piece.includes(lost.done)) {
      lost.onLost?.();
      end();
    }
    return false;
  }
}

interface Way {
  delayMs(): number;
  /** False: the piece is lost. */
  passes(piece: Buffer): boolean;
}

function forward(from: Socket, to: Socket, way: Way): void {
  from.on('data', (piece) => {
    if (!way.passes(piece)) return;
    const started = performance.now();
    const pass = () => {
      const left = started + way.delayMs() - performance.now();
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

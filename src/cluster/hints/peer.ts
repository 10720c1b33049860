// The way of hints to one other node: connects, shows who it is, sends the newest number whenever it has changed. At most
// one frame is on its way; what happens meanwhile is one frame more. A connection that ends is made again, with growing
// pauses. Nothing is kept for a peer that is away: it polls.
import { assert } from '../../base/assert.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import { backoffMs } from '../../base/retry.ts';
import type { NodeEndpoint } from '../../metadata/nodes.ts';
import { encodeFrame, FrameParser } from './frames.ts';
import { Connecting, type Identity } from './handshake.ts';
import { connectForHints, type HintWire } from './socket.ts';

export interface PeerOptions {
  readonly nodeId: number;
  readonly session: string;
  readonly endpoint: NodeEndpoint;
  readonly identity: () => Identity;
  /** What is to be told now. */
  readonly newest: () => { readonly commit: number; readonly news: number };
  readonly clock: Clock;
  readonly prng: Prng;
  readonly logger: Logger;
  readonly onSent: () => void;
  /** Nothing listens there any more: the process is probably gone. */
  readonly onGone: () => void;
  /** The other side could not show who it is. */
  readonly onRefused: (reason: string) => void;
}

/** A frame on its way, or a handshake, for longer: the connection is made again. */
const PATIENCE_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 5_000;

export class HintPeer {
  readonly #options: PeerOptions;
  #wire: HintWire | undefined;
  #open = false;
  #sending = false;
  #dirty = true;
  #attempts = 0;
  #timer: Timer | undefined;
  #patience: Timer | undefined;
  #stopped = false;

  constructor(options: PeerOptions) {
    this.#options = options;
    this.#connect();
  }

  get open(): boolean {
    return this.#open;
  }

  /** Is this the way to that life of the node, at that address? */
  leadsTo(session: string, { host, port }: NodeEndpoint): boolean {
    const { endpoint } = this.#options;
    return session === this.#options.session && host === endpoint.host && port === endpoint.port;
  }

  /** There is something newer to tell. */
  tell(): void {
    this.#dirty = true;
    this.#flush();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#patience?.cancel();
    this.#wire?.close();
  }

  #connect(): void {
    const { identity, nodeId, session, prng, endpoint } = this.#options;
    const handshake = new Connecting(identity(), { nodeId, session }, prng);
    const parser = new FrameParser();
    this.#await();
    const wire = connectForHints(endpoint, {
      opened: () => wire.send(encodeFrame(handshake.hello)),
      received: (chunk) => this.#received(parser.push(chunk), handshake),
      closed: (error) => this.#closed(error),
    });
    this.#wire = wire;
  }

  #received(frames: Iterable<Parameters<Connecting['take']>[0]>, handshake: Connecting): void {
    try {
      for (const frame of frames) {
        if (this.#open) throw new FloeError('unauthorized', 'it has nothing to say here');
        this.#wire?.send(encodeFrame(handshake.take(frame)));
        this.#opened();
      }
    } catch (caught) {
      const { code, message } = FloeError.from(caught);
      this.#options.onRefused(code);
      const { nodeId, logger } = this.#options;
      logger.warn({ nodeId, error: message }, 'a node could not show who it is');
      this.#wire?.close();
    }
  }

  #opened(): void {
    this.#open = true;
    this.#attempts = 0;
    this.#patience?.cancel();
    this.#dirty = true;
    this.#flush();
  }

  #flush(): void {
    if (!this.#open || this.#sending || !this.#dirty) return;
    const { newest, onSent } = this.#options;
    const wire = this.#wire;
    assert(wire !== undefined, 'an open way has a wire');
    this.#dirty = false;
    this.#sending = true;
    this.#await();
    wire.send(encodeFrame({ type: 'hint', ...newest() }), () => {
      if (this.#wire !== wire) return;
      this.#sending = false;
      this.#patience?.cancel();
      onSent();
      this.#flush();
    });
  }

  /** Gives the connection up when the next step takes too long. */
  #await(): void {
    this.#patience?.cancel();
    this.#patience = this.#options.clock.setTimer(PATIENCE_MS, () => this.#wire?.close());
  }

  #closed(error: Error | undefined): void {
    this.#wire = undefined;
    this.#open = false;
    this.#sending = false;
    this.#patience?.cancel();
    if (this.#stopped) return;
    const { clock, prng, nodeId, logger } = this.#options;
    logger.debug({ nodeId, error: error?.message }, 'no connection for hints');
    if ((error as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED')
      this.#options.onGone();
    this.#attempts += 1;
    const pauses = { prng, firstDelayMs: FIRST_PAUSE_MS, maxDelayMs: MAX_PAUSE_MS };
    this.#timer = clock.setTimer(backoffMs(pauses, this.#attempts), () => this.#connect());
  }
}

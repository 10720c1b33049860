// One client connection, sans I/O: frames in, requests worked on concurrently, replies out in order of arrival.
// Requests start in order of arrival, so Produce is admitted in it. A request that may not start yet is copied and
// waits here; while one does, the socket isn't read. Not for: sockets (server.ts).
//
// When a request may not start yet:
// - the connection has `connection.max.requests` under way, or its client hasn't read earlier replies
// - `queued.max.requests` of all connections are under way, Produce counted apart
// - it is a Produce and the log is congested, or its connection or user has its share of the bytes in flight; other
//   connections go on, so groups don't rebalance meanwhile
// - a quota makes the client wait: it was told how long in an earlier reply
import { AssertionError, assert } from '../base/assert.ts';
import { FloeError } from '../base/error.ts';
import type { Access } from './auth/access.ts';
import { ANONYMOUS } from './auth/authorizer.ts';
import { SASL_AUTHENTICATE_KEY, type Session } from './auth/session.ts';
import type { BufferPool } from './buffer-pool.ts';
import type { CopyBudget } from './copy-budget.ts';
import { kafkaCodeOf } from './failures.ts';
import { FrameReceiver } from './frame-receiver.ts';
import type { Gate, Turnstile } from './gate.ts';
import { type ClientConnection, HANG_UP, NO_REPLY } from './handler.ts';
import { unsupportedVersionReply } from './handlers/18-api-versions.ts';
import { Outbox } from './outbox.ts';
import { chargeArrival, chargeTime } from './quotas/charge.ts';
import { Mute } from './quotas/mute.ts';
import {
  decodeBody,
  encodeReply,
  type OpenedRequest,
  openBareToken,
  openFrame,
  peekApiKey,
} from './request.ts';
import type { RequestStats } from './request-stats.ts';
import type { BrokerServices } from './services.ts';
import type { Share, Shares } from './shares.ts';
import { Slot } from './slot.ts';
import type { Wire } from './wire.ts';

const PRODUCE_KEY = 0;

/** A reply of which nothing was read for this long is copied out of the memory that it shares with the log. */
const REPLY_PIN_MS = 5_000;

/** Replies may be as large as fetch.max.bytes: so many such requests run, or wait to be sent, at a time. */
const MAX_BULKY = 2;

/** What all connections of a broker share. */
export interface ConnectionShared {
  readonly services: BrokerServices;
  readonly gate: Gate;
  /** Of the log's bytes in flight: Produce that is worked on. */
  readonly inFlight: Shares;
  /** Of replies to slow readers. */
  readonly copies: CopyBudget;
  readonly pool: BufferPool;
  readonly landing: Buffer;
  readonly stats: RequestStats;
  /** A bug was met: the process must not go on. */
  crash(error: Error): void;
}

export interface ConnectionOptions {
  readonly shared: ConnectionShared;
  readonly wire: Wire;
  readonly id: number;
  readonly listener: string;
  /** Who the client is, or has to show yet. */
  readonly session: Session;
  /** The connection is over; called once. */
  onClosed(): void;
}

interface WaitingFrame {
  readonly frame: Buffer;
  readonly receivedMs: number;
  /** From which its bytes are taken. */
  readonly share: Share;
}

export class Connection implements ClientConnection {
  readonly id: number;
  readonly listener: string;
  readonly remoteAddress: string;
  readonly remotePort: number;
  client = { name: '', version: '' };
  rack?: string;
  readonly session: Session;
  readonly #options: ConnectionOptions;
  readonly #shared: ConnectionShared;
  readonly #wire: Wire;
  readonly #outbox: Outbox;
  readonly #receiver: FrameReceiver;
  readonly #abort = new AbortController();
  readonly #mute: Mute;
  /** Requests under way or replied behind one that isn't, in order of arrival. */
  readonly #slots: Slot[] = [];
  /** Frames that may not start yet. */
  readonly #waiting: WaitingFrame[] = [];
  /** Bytes of replies made and not yet taken by the kernel. */
  #unsentBytes = 0;
  /** Bulky requests whose reply isn't out. */
  #bulky = 0;
  #paused = false;
  /** Of the gate's bytes, of the log's: opened when first needed, for who the client is by then. */
  #received: Share | undefined;
  #produced: Share | undefined;
  /** No further request is started: the peer sent garbage, or the broker stops. */
  #ending = false;
  #hungUp = false;
  #ended = false;
  #closed = false;
  #starting = false;
  /** A request waits for what has to be learnt before it may start. */
  #preparing = false;
  #lastProgressMs: number;
  readonly #drained: (() => void)[] = [];
  /** One function for the connection's life: the gate tells waiters apart by it. */
  readonly #pump = () => this.#startWaiting();

  constructor(options: ConnectionOptions) {
    const { shared, wire } = options;
    this.#options = options;
    this.#shared = shared;
    this.#wire = wire;
    this.id = options.id;
    this.listener = options.listener;
    this.remoteAddress = wire.remoteAddress;
    this.remotePort = wire.remotePort ?? 0;
    const { session } = options;
    this.session = session;
    const { values } = shared.services.config;
    this.#mute = new Mute(shared.services.clock, this.#pump);
    this.#lastProgressMs = shared.services.clock.monotonic();
    // The socket says that it closed a turn of the event loop later. Were requests started until then, each would fail to be
    // sent and start the next before that turn: a thousand that a client left behind stopped the broker for a minute.
    const events = { onProgress: () => this.#sentSome(), onGone: () => this.closed() };
    this.#outbox = new Outbox(wire, events, shared.copies);
    const shareOf = () => this.#receivedShare();
    this.#receiver = new FrameReceiver({
      landing: shared.landing,
      pool: shared.pool,
      gate: shared.gate,
      get share() {
        return shareOf();
      },
      // Nobody may make the broker hold much before it is known who they are.
      get maxFrameBytes() {
        return session.trusted ? values['socket.request.max.bytes'] : session.maxTokenBytes;
      },
      onFrame: (frame) => this.#arrived(frame),
      onNoRoom: () => this.#pauseForRoom(),
    });
  }

  get access(): Access {
    return this.session.access;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Where the socket should read into next. */
  target(): Buffer {
    return this.#receiver.target();
  }

  /** Bytes arrived: see FrameReceiver. */
  received(buffer: Buffer, length: number): void {
    if (this.#ending) return;
    this.#lastProgressMs = this.#now();
    try {
      this.#receiver.received(buffer, length);
    } catch (caught) {
      this.#refuse(caught);
    }
    this.#readOrPause();
  }

  /** The socket is gone. Requests under way run to their end; nobody hears of it. */
  closed(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#ending = true;
    this.#abort.abort(new FloeError('cancelled', 'the client is gone'));
    this.#receiver.close();
    this.#mute.cancel();
    const { gate, inFlight } = this.#shared;
    gate.forget(this.#pump);
    for (const { frame, share } of this.#waiting.splice(0)) gate.release(frame.length, share);
    if (this.#received !== undefined) gate.close(this.#received);
    if (this.#produced !== undefined) inFlight.close(this.#produced);
    this.#outbox.close();
    this.#sendReplies();
    for (const action of this.#drained.splice(0)) action();
    this.#options.onClosed();
  }

  /** Stops starting requests, lets those under way finish, then closes. Resolves when closed. */
  drain(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#ending = true;
    this.#pause();
    // Long polls answer at once with what they have.
    this.#abort.abort(new FloeError('cancelled', 'the broker stops'));
    return new Promise((resolve) => {
      this.#drained.push(resolve);
      this.#endWhenIdle();
    });
  }

  destroy(): void {
    this.#wire.destroy();
  }

  /** Closes a connection that is idle, or stuck within a request or a reply, for too long. */
  check(nowMs: number): void {
    const values = this.#shared.services.config.values;
    const quietMs = nowMs - this.#lastProgressMs;
    const stuck = (this.#receiver.partial && !this.#paused) || !this.#outbox.empty;
    if (stuck && quietMs > values['connection.progress.timeout.ms']) {
      this.#log('closed: no progress within connection.progress.timeout.ms');
      this.destroy();
    } else if (!this.#outbox.empty && quietMs > REPLY_PIN_MS) {
      this.#outbox.copyWaiting();
    } else if (this.session.overdue(nowMs)) {
      this.#log('closed: not authenticated within connection.authentication.timeout.ms');
      this.destroy();
    } else if (!stuck && this.#idle && quietMs > values['connections.max.idle.ms']) {
      this.destroy();
    }
  }

  get #idle(): boolean {
    return this.#slots.length === 0 && this.#waiting.length === 0;
  }

  #now(): number {
    return this.#shared.services.clock.monotonic();
  }

  // ---------------------------------------------------------------- requests in

  #arrived(frame: Buffer): void {
    if (this.#ending) return;
    const receivedMs = this.#now();
    if (this.#waiting.length === 0 && this.#mayStart(this.#keyOf(frame))) {
      this.#start(frame, receivedMs, false);
    } else {
      const share = this.#receivedShare();
      this.#waiting.push({ frame: Buffer.from(frame), receivedMs, share });
      this.#shared.gate.take(frame.length, share);
    }
  }

  #mayStart(apiKey: number): boolean {
    const { services } = this.#shared;
    if (this.#mute.on || this.session.busy || this.#preparing) return false;
    const values = services.config.values;
    if (this.#slots.length >= values['connection.max.requests']) return false;
    if (this.#unsentBytes >= values['connection.max.unsent.bytes']) return false;
    if (this.#bulky >= MAX_BULKY && services.router.handler(apiKey)?.bulky) {
      return false;
    }
    const turnstile = this.#turnstile(apiKey);
    if (!turnstile.open) {
      turnstile.whenOpen(this.#pump);
      return false;
    }
    return apiKey !== PRODUCE_KEY || this.#mayProduce();
  }

  #turnstile(apiKey: number): Turnstile {
    const { produce, others } = this.#shared.gate;
    return apiKey === PRODUCE_KEY ? produce : others;
  }

  #mayProduce(): boolean {
    const { services, inFlight } = this.#shared;
    // One that hasn't authenticated is refused when its request is opened.
    if (!this.session.trusted) return true;
    this.#produced ??= inFlight.open(this.#user);
    const share = this.#produced;
    if (inFlight.admits(share)) return true;
    if (inFlight.wait(share, this.#pump)) {
      const reason = services.log.congested ? 'log' : 'share';
      const help =
        'Produce requests that waited: the log is congested, or their client has its share';
      services.metrics.count('floe_broker_produce_waits_total', help, { reason });
    }
    return false;
  }

  /** Whose shares are used: who the client has shown to be, else its address. */
  get #user(): string {
    const { principal, host } = this.access.who;
    return principal === ANONYMOUS ? host : `${principal.type}:${principal.name}`;
  }

  #receivedShare(): Share {
    const user = this.#user;
    const share = this.#received;
    if (share?.user.name === user) return share;
    // Authenticated since: what is held still is given back to the share that it was taken from.
    if (share !== undefined) this.#shared.gate.close(share);
    this.#received = this.#shared.gate.share(user);
    return this.#received;
  }

  /** Starts what waited, in order, as far as it may. */
  #startWaiting(): void {
    // A request that ends at once comes back here from within the loop, which goes on anyway.
    if (this.#starting || this.#closed) return;
    this.#starting = true;
    while (this.#waiting.length > 0 && !this.#ending) {
      const { frame, receivedMs, share } = this.#waiting[0]!;
      if (!this.#mayStart(this.#keyOf(frame))) break;
      this.#waiting.shift();
      this.#shared.gate.release(frame.length, share);
      // What a quota made it wait is no fault of ours: the log of slow requests doesn't count it.
      this.#start(frame, Math.max(receivedMs, this.#mute.endedMs), true);
    }
    this.#starting = false;
    this.#readOrPause();
  }

  #start(frame: Buffer, receivedMs: number, owned: boolean): void {
    const { services, stats } = this.#shared;
    try {
      const request = this.#open(frame, owned);
      const requestBytes = frame.length;
      const slot = new Slot({
        connection: this,
        services,
        stats,
        request,
        receivedMs,
        requestBytes,
      });
      if (services.quotas.active) this.#chargeArrival(slot);
      stats.request(slot.handler.api.name, frame.length + 4);
      if (request.unsupportedApiVersions) {
        this.#slots.push(slot);
        this.#reply(slot, unsupportedVersionReply(services.router));
        return;
      }
      const body = decodeBody(request);
      this.#slots.push(slot);
      if (slot.handler.bulky) this.#bulky += 1;
      const learnt = slot.handler.prepare?.(body, slot);
      if (learnt === undefined) this.#handle(slot, body);
      else this.#prepare(slot, owned ? body : this.#keptBody(frame), learnt);
      if (slot.begunMs >= 0) slot.busyMs = this.#now() - slot.begunMs;
    } catch (caught) {
      this.#refuse(caught);
    }
  }

  #keyOf(frame: Buffer): number {
    return this.session.expectsBareToken ? SASL_AUTHENTICATE_KEY : peekApiKey(frame);
  }

  #open(frame: Buffer, owned: boolean): OpenedRequest {
    const { session } = this;
    const { router } = this.#shared.services;
    if (!session.free) {
      if (session.expectsBareToken) return openBareToken(frame, router);
      session.admit(peekApiKey(frame));
    }
    return openFrame(frame, router, owned);
  }

  /** As decoded from bytes of its own: the frame's are the receiver's again when the request waits. */
  #keptBody(frame: Buffer): never {
    return decodeBody(this.#open(Buffer.from(frame), true));
  }

  /** Starts the request once what it needs is there; until then nothing behind it starts. */
  #prepare(slot: Slot, body: never, learnt: Promise<unknown>): void {
    const { gate, inFlight } = this.#shared;
    const share = this.#receivedShare();
    const produced = this.#producedBy(slot);
    this.#preparing = true;
    gate.take(slot.requestBytes, share);
    if (produced !== undefined) inFlight.reserve(produced, slot.requestBytes);
    const go = (start: () => void) => {
      gate.release(slot.requestBytes, share);
      this.#preparing = false;
      start();
      if (produced !== undefined) inFlight.unreserve(produced, slot.requestBytes);
      this.#startWaiting();
    };
    learnt.then(
      (prepared) => go(() => this.#handle(slot, body, prepared)),
      (caught) => go(() => this.#settle(slot, this.#failure(slot, body, caught))),
    );
  }

  /** Of a Produce: what its bytes in flight are taken from. */
  #producedBy({ handler }: Slot): Share | undefined {
    return handler.api.key === PRODUCE_KEY ? this.#produced : undefined;
  }

  #handle(slot: Slot, body: never, prepared?: unknown): void {
    const { handler } = slot;
    const { inFlight } = this.#shared;
    slot.startedMs = this.#now();
    const turnstile = handler.waits === true ? undefined : this.#turnstile(handler.api.key);
    turnstile?.enter();
    const share = this.#producedBy(slot);
    if (share !== undefined) inFlight.take(share, slot.requestBytes);
    const settle = (outcome: unknown) => {
      turnstile?.leave();
      if (share !== undefined) {
        const give = () => inFlight.give(share, slot.requestBytes);
        if (slot.kept === undefined) give();
        else void slot.kept.then(give);
      }
      try {
        this.#settle(slot, outcome);
      } catch (caught) {
        // A reply that can't be encoded is a bug of its handler.
        this.#shared.crash(caught as Error);
        this.destroy();
      }
    };
    const fail = (caught: unknown) => settle(this.#failure(slot, body, caught));
    let outcome: unknown;
    try {
      outcome = handler.handle(body, slot, prepared);
    } catch (caught) {
      fail(caught);
      return;
    }
    if (outcome instanceof Promise) outcome.then(settle, fail);
    else settle(outcome);
  }

  /** What to answer when a handler threw. */
  #failure(slot: Slot, body: never, caught: unknown): unknown {
    if (caught instanceof AssertionError) {
      this.#shared.crash(caught);
      return HANG_UP;
    }
    const error = FloeError.from(caught);
    const { handler } = slot;
    const level = error.code === 'internal' ? 'error' : 'warn';
    this.#shared.services.logger[level](
      { api: handler.api.name, client: slot.clientId, error: error.message },
      'request failed',
    );
    if (handler.failed === undefined) return HANG_UP;
    return handler.failed(body, { code: kafkaCodeOf(error), message: error.message }, slot);
  }

  #settle(slot: Slot, outcome: unknown): void {
    this.#charge(slot, outcome);
    if (outcome === NO_REPLY) slot.state = 'silent';
    else if (outcome === HANG_UP) slot.state = 'hang-up';
    else {
      this.#reply(slot, outcome);
      return;
    }
    slot.repliedMs = this.#now();
    this.#sendReplies();
  }

  /** Bytes that the request brings. Its own reply is still sent; what follows it waits. */
  #chargeArrival(slot: Slot): void {
    slot.begunMs = this.#now();
    const { limits, requestBytes: bytes } = slot;
    if (limits === undefined) return;
    slot.throttle(chargeArrival(limits, { apiKey: slot.handler.api.key, bytes }, slot.begunMs));
    if (slot.throttleMs > 0) this.#mute.start(slot.throttleMs);
  }

  /** Time that the request took, and the wait that follows from all it cost. Kafka doesn't charge acks=0 for time. */
  #charge(slot: Slot, outcome: unknown): void {
    const { limits } = slot;
    if (limits !== undefined && slot.begunMs >= 0 && outcome !== NO_REPLY) {
      const nowMs = this.#now();
      const busyMs = slot.busyMs < 0 ? nowMs - slot.begunMs : slot.busyMs;
      slot.throttle(chargeTime(limits, busyMs, nowMs));
    }
    if (slot.throttleMs <= 0) return;
    this.#shared.stats.throttled(slot.handler.api.name, slot.throttleMs);
    this.#mute.start(slot.throttleMs);
  }

  // ---------------------------------------------------------------- replies out

  #reply(slot: Slot, body: unknown): void {
    const code = (body as { errorCode?: unknown }).errorCode;
    if (typeof code === 'number' && code !== 0) slot.countError(code);
    const begunMs = slot.begunMs < 0 ? 0 : this.#now();
    const told =
      slot.throttleMs > 0 ? { ...(body as object), throttleTimeMs: slot.throttleMs } : body;
    const { pieces, bytes } = encodeReply(slot.request, told);
    slot.pieces = pieces;
    slot.bytes = bytes;
    slot.state = 'replied';
    slot.repliedMs = this.#now();
    const { limits } = slot;
    if (limits !== undefined && begunMs > 0) {
      chargeTime(limits, slot.repliedMs - begunMs, slot.repliedMs);
    }
    this.#unsentBytes += bytes;
    this.#sendReplies();
  }

  /** Sends replies up to the first request that still works; after a hang-up they are only freed. */
  #sendReplies(): void {
    while (this.#slots.length > 0 && this.#slots[0]!.state !== 'working') {
      const slot = this.#slots.shift()!;
      if (slot.state === 'hang-up') this.#hangUp();
      const { pieces, bytes } = slot;
      if (slot.state !== 'replied') this.#finish(slot);
      else if (this.#hungUp) this.#sent(slot);
      else {
        this.#outbox.push({
          pieces,
          bytes,
          unpin: () => slot.unpin(),
          done: () => this.#sent(slot),
        });
        if (slot.last) this.#hangUp();
      }
    }
    this.#startWaiting();
    this.#endWhenIdle();
  }

  #sent(slot: Slot): void {
    this.#unsentBytes -= slot.bytes;
    assert(this.#unsentBytes >= 0, 'a reply is sent once');
    this.#finish(slot);
    if (!this.#closed) this.#measure(slot);
  }

  #finish(slot: Slot): void {
    if (slot.handler.bulky) this.#bulky -= 1;
    assert(this.#bulky >= 0, 'a request is finished once');
    slot.finish();
  }

  #measure(slot: Slot): void {
    const { handler } = slot;
    const nowMs = this.#now();
    const times = {
      queueMs: slot.startedMs - slot.receivedMs,
      handleMs: slot.repliedMs - slot.startedMs,
      sendMs: nowMs - slot.repliedMs,
    };
    this.#shared.stats.reply(handler.api.name, slot.bytes, times);
    const limitMs = this.#shared.services.config.values['request.slow.ms'];
    const slowMs = handler.waits ? times.queueMs + times.sendMs : nowMs - slot.receivedMs;
    if (slowMs > limitMs) {
      const api = handler.api.name;
      const facts = { api, client: slot.clientId, peer: this.remoteAddress, ...times };
      this.#shared.services.logger.warn(facts, 'slow request');
    }
  }

  #sentSome(): void {
    this.#lastProgressMs = this.#now();
    this.#startWaiting();
    this.#endWhenIdle();
  }

  // ---------------------------------------------------------------- reading, ending

  #readOrPause(): void {
    if (this.#closed) return;
    const full =
      this.#slots.length >= this.#shared.services.config.values['connection.max.requests'];
    const { starved } = this.#receiver;
    if (starved) this.#shared.gate.whenRoom(this.#pump);
    const held = this.#mute.on || this.#waiting.length > 0;
    if (this.#ending || full || starved || held) this.#pause();
    else this.#resume();
  }

  #pauseForRoom(): void {
    this.#shared.gate.whenRoom(this.#pump);
    this.#pause();
  }

  #pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#wire.pause();
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#lastProgressMs = this.#now();
    this.#wire.resume();
  }

  /** The peer does not speak the protocol: replies under way are still sent, then the connection ends. */
  #refuse(caught: unknown): void {
    if (caught instanceof AssertionError) {
      this.#shared.crash(caught);
      this.destroy();
      return;
    }
    this.#log(`closed: ${FloeError.from(caught).message}`);
    this.#ending = true;
    this.#pause();
    this.#endWhenIdle();
  }

  /** Only a closed connection tells the client: earlier replies still go out, later ones don't. */
  #hangUp(): void {
    this.#ending = true;
    this.#hungUp = true;
    this.#pause();
  }

  #endWhenIdle(): void {
    if (!this.#ending || this.#closed || this.#ended) return;
    if ((this.#slots.length > 0 && !this.#hungUp) || !this.#outbox.empty) return;
    this.#ended = true;
    this.#wire.end();
  }

  #log(message: string): void {
    this.#shared.services.logger.info({ peer: this.remoteAddress, connection: this.id }, message);
  }
}

// The way of produce requests through one node, whole and in virtual time: connections without sockets, the gate, shares and
// the real admission, over a store that takes its time. Clients send as fast as they may, or one small request after the
// other; after each moment it is looked at whether limits hold and nobody waits for what is free.
// Not for: what becomes of the bytes (simulation/), real sockets (cluster/overload.ts).
import { expect } from 'vitest';
import { ManualClock } from '../../src/base/clock.ts';
import { noMetrics } from '../../src/base/metrics.ts';
import { openListener } from '../../src/broker/auth/listener-auth.ts';
import { Session } from '../../src/broker/auth/session.ts';
import { BufferPool } from '../../src/broker/buffer-pool.ts';
import { Connection, type ConnectionShared } from '../../src/broker/connection.ts';
import { CopyBudget } from '../../src/broker/copy-budget.ts';
import { LANDING_BYTES } from '../../src/broker/frame-receiver.ts';
import { Gate } from '../../src/broker/gate.ts';
import { produceHandler } from '../../src/broker/handlers/00-produce.ts';
import { RequestStats } from '../../src/broker/request-stats.ts';
import type { Router } from '../../src/broker/router.ts';
import type { BrokerServices } from '../../src/broker/services.ts';
import { type Share, Shares } from '../../src/broker/shares.ts';
import { batchOf, produceRequest } from '../../src/broker/testing/requests.ts';
import type { Wire } from '../../src/broker/wire.ts';
import { encodeRequest } from '../../src/protocol/envelope.ts';
import { produceApi } from '../../src/protocol/messages/00-produce.ts';
import { apiVersionsApi } from '../../src/protocol/messages/18-api-versions.ts';
import { Admission, answerAll, failed } from '../../src/storage/log/admission.ts';
import type { AppendItem, AppendOutcome, Log } from '../../src/storage/log/log.ts';
import type { OpenFlush } from '../../src/storage/log/open-flush.ts';
import { SlabPool } from '../../src/storage/log/slab.ts';

/** How the store takes flushes, one after the other. */
export interface Store {
  readonly bytesPerMs: number;
  readonly latencyMs: number;
  /** Every so many flushes one takes this long more, and fails where told so. */
  readonly stall?: { readonly every: number; readonly ms: number; readonly fails: boolean };
}

export interface Client {
  readonly user: string;
  /** Of what it produces, one request after the other and over again. None: it asks for something small instead. */
  readonly sizes: readonly number[];
  /** Requests that it has under way at a time. */
  readonly depth: number;
  /** Between a reply and its next request. */
  readonly pauseMs: number;
  readonly timeoutMs: number;
  /** It goes then, whatever is under way. */
  readonly leavesMs?: number;
}

export interface WorldOptions {
  readonly services: BrokerServices;
  readonly store: Store;
  readonly clients: readonly Client[];
  readonly limitBytes: number;
  readonly factor: number;
  /** Requests that the gate lets in at a time. */
  readonly maxRequests?: number;
  /** How long is learnt elsewhere before a request may start. */
  readonly learnMs?: number;
}

/** The largest batch fits. */
const SLAB_BYTES = 256 * 1024;
/** Way of a request or reply over the network. */
const WAY_MS = 0.2;

const OK: AppendOutcome = {
  errorCode: 0,
  baseOffset: 0,
  logAppendTimeMs: -1,
  logStartOffset: 0,
  errorMessage: '',
};

/** The log's own bound on bytes in flight, and who gives them back when. */
class PacedLog {
  readonly slabs = SlabPool.create(SLAB_BYTES, 8);
  readonly admission: Admission;
  readonly #clock: ManualClock;
  readonly #store: Store;
  #freeMs = 0;
  #flushes = 0;
  /** Of batches appended whose flush hasn't landed. */
  inFlight = 0;
  mostInFlight = 0;
  landedBytes = 0;

  constructor(
    clock: ManualClock,
    { store, limitBytes }: Pick<WorldOptions, 'store' | 'limitBytes'>,
  ) {
    this.#clock = clock;
    this.#store = store;
    this.admission = new Admission({
      slabs: this.slabs,
      policy: {
        kind: 'object',
        flushBytes: 64 * 1024,
        ageMs: 20,
        idleMs: 2,
        rate: 100,
        parallel: 4,
      },
      clock,
      metrics: noMetrics,
      inFlightBytes: limitBytes,
      freeSlab: () => false,
      send: (flush) => this.#send(flush),
    });
  }

  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]> {
    const bytes = items.reduce((sum, item) => sum + item.bytes.length, 0);
    this.inFlight += bytes;
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight);
    const appended = this.admission.append(items);
    void appended.then(() => {
      this.inFlight -= bytes;
    });
    return appended;
  }

  /** One pipe: a flush begins to be written when the one before is. */
  #send(flush: OpenFlush): void {
    const { bytesPerMs, latencyMs, stall } = this.#store;
    this.#flushes += 1;
    const stalls = stall !== undefined && this.#flushes % stall.every === 0;
    const nowMs = this.#clock.monotonic();
    this.#freeMs =
      Math.max(nowMs, this.#freeMs) + flush.bytes / bytesPerMs + (stalls ? stall.ms : 0);
    this.#clock.setTimer(this.#freeMs + latencyMs - nowMs, () => {
      this.admission.landed(flush, () => {
        this.slabs.release(flush.slab.number);
        this.landedBytes += flush.bytes;
        answerAll(flush, () => (stalls && stall.fails ? failed(56, 'refused') : OK));
      });
      this.admission.settle();
    });
  }

  /** What the broker calls of a log. */
  asLog(inner: Log): Log {
    const own: Partial<Log> = {
      append: (items) => this.append(items),
      whenRelieved: (action) => this.admission.whenRelieved(action),
    };
    const { admission } = this;
    return new Proxy(inner, {
      get(target, name) {
        if (name === 'room') return admission.room;
        if (name === 'congested') return admission.congested;
        const found: unknown = own[name as keyof Log] ?? Reflect.get(target, name);
        return typeof found === 'function' ? found.bind(target) : found;
      },
    });
  }
}

function learning({ services: { router }, learnMs }: WorldOptions, clock: ManualClock): Router {
  if (learnMs === undefined) return router;
  return router.with([{ ...produceHandler, prepare: () => clock.sleep(learnMs) }]);
}

/** Shares that can be looked at. */
class SeenShares extends Shares {
  readonly all: Share[] = [];

  override open(name: string): Share {
    const share = super.open(name);
    this.all.push(share);
    return share;
  }
}

const NAMELESS = { clientSoftwareName: '', clientSoftwareVersion: '' };

const frames = new Map<string, Buffer>();

function frameOf(bytes: number | undefined, timeoutMs: number): Buffer {
  const key = `${bytes} ${timeoutMs}`;
  let frame = frames.get(key);
  if (frame === undefined) {
    const common = { correlationId: 1, clientId: null };
    const pieces =
      bytes === undefined
        ? encodeRequest({ ...common, api: apiVersionsApi, version: 0, request: NAMELESS })
        : encodeRequest({
            ...common,
            api: produceApi,
            version: 8,
            request: produceRequest('t', batchOf(['x'.repeat(bytes)]), { timeoutMs }),
          });
    frame = Buffer.concat(pieces);
    frames.set(key, frame);
  }
  return frame;
}

/** A client and its connection. */
export class Sender implements Wire {
  readonly client: Client;
  readonly remoteAddress: string;
  readonly connection: Connection;
  readonly #clock: ManualClock;
  readonly #sent: number[] = [];
  #next = 0;
  #queue: Buffer[] = [];
  #paused = false;
  #reply = Buffer.alloc(0);
  #stopped = false;
  #due = false;
  answered = 0;
  answeredBytes = 0;
  /** The longest that a request has taken. */
  slowestMs = 0;

  constructor(client: Client, shared: ConnectionShared, clock: ManualClock) {
    this.client = client;
    this.remoteAddress = client.user;
    this.#clock = clock;
    const session = new Session({
      ...shared.services,
      listener: openListener('PLAINTEXT'),
      host: client.user,
      subject: undefined,
    });
    const listener = 'PLAINTEXT';
    this.connection = new Connection({
      shared,
      wire: this,
      id: 1,
      listener,
      session,
      onClosed() {},
    });
    this.#soon(0);
    if (client.leavesMs !== undefined) clock.setTimer(client.leavesMs, () => this.leave());
  }

  /** Requests without a reply. */
  get pending(): number {
    return this.#sent.length;
  }

  /** Sends nothing new. */
  stop(): void {
    this.#stopped = true;
  }

  leave(): void {
    if (this.#stopped && this.#sent.length === 0) return;
    this.#stopped = true;
    this.#sent.length = 0;
    this.#queue = [];
    this.connection.closed();
  }

  #soon(delayMs: number): void {
    if (this.#due) return;
    this.#due = true;
    this.#clock.setTimer(delayMs + WAY_MS, () => {
      this.#due = false;
      this.#flow();
    });
  }

  #flow(): void {
    const { sizes, depth, timeoutMs } = this.client;
    while (!this.#stopped && this.#sent.length < depth) {
      this.#queue.push(frameOf(sizes[this.#next++ % sizes.length], timeoutMs));
      this.#sent.push(this.#clock.monotonic());
    }
    while (!this.#paused && this.#queue.length > 0) {
      const chunk = this.#read();
      this.connection.received(chunk, chunk.length);
    }
  }

  /** What a socket gives at a time: as much as is there. */
  #read(): Buffer {
    const pieces: Buffer[] = [];
    let room = LANDING_BYTES;
    while (room > 0 && this.#queue.length > 0) {
      const head = this.#queue.shift()!;
      pieces.push(head.subarray(0, room));
      if (head.length > room) this.#queue.unshift(head.subarray(room));
      room -= Math.min(room, head.length);
    }
    return Buffer.concat(pieces);
  }

  write(pieces: readonly Uint8Array[], done: (sent: boolean) => void): void {
    this.#reply = Buffer.concat([this.#reply, ...pieces]);
    while (this.#reply.length >= 4 && this.#reply.length >= 4 + this.#reply.readInt32BE(0)) {
      this.#reply = this.#reply.subarray(4 + this.#reply.readInt32BE(0));
      const { sizes, pauseMs } = this.client;
      this.answeredBytes += sizes[this.answered % sizes.length] ?? 0;
      this.answered += 1;
      this.slowestMs = Math.max(this.slowestMs, this.#clock.monotonic() - this.#sent.shift()!);
      this.#soon(pauseMs);
    }
    process.nextTick(done, true);
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#soon(0);
  }

  end(): void {
    this.#stopped = true;
  }

  destroy(): void {
    this.#stopped = true;
  }
}

export class World {
  readonly clock = new ManualClock();
  readonly log: PacedLog;
  readonly senders: readonly Sender[];
  readonly #options: WorldOptions;
  readonly #shares: SeenShares;
  readonly #gate: Gate;
  readonly #largest: number;
  readonly #crashes: Error[] = [];

  constructor(options: WorldOptions) {
    const { clients, limitBytes, factor, maxRequests = 2_000 } = options;
    this.#options = options;
    this.log = new PacedLog(this.clock, options);
    const log = this.log.asLog(options.services.log);
    const router = learning(options, this.clock);
    this.#shares = new SeenShares({
      free: () => log.room,
      whenFree: (action) => log.whenRelieved(action),
      factor: () => factor,
    });
    this.#gate = new Gate({ maxRequests, maxBytes: 10 * limitBytes, factor: () => factor });
    this.#largest = Math.max(...clients.flatMap(({ sizes }) => sizes)) + 1_000;
    const shared: ConnectionShared = {
      services: { ...options.services, log, router, clock: this.clock },
      copies: new CopyBudget(),
      gate: this.#gate,
      inFlight: this.#shares,
      pool: new BufferPool(),
      landing: Buffer.alloc(LANDING_BYTES),
      stats: new RequestStats(noMetrics, this.clock),
      crash: (error) => this.#crashes.push(error),
    };
    this.senders = clients.map((client) => new Sender(client, shared, this.clock));
  }

  /** Lets time pass, and looks after each moment. */
  async run(forMs: number): Promise<void> {
    const endMs = this.clock.monotonic() + forMs;
    while (this.clock.monotonic() < endMs) {
      const next = Math.min(this.clock.nextTimer() ?? endMs, endMs);
      await this.clock.advance(Math.max(0, next - this.clock.monotonic()));
      this.#look();
    }
  }

  #look(): void {
    const { limitBytes, factor } = this.#options;
    const { inFlight } = this.log;
    expect(this.#crashes).toEqual([]);
    expect(inFlight, 'the limit holds but for one request').toBeLessThanOrEqual(
      limitBytes + this.#largest,
    );
    const held = this.#shares.all.reduce((sum, { bytes }) => sum + bytes, 0);
    expect(held, 'what is in flight is somebody’s').toBeGreaterThanOrEqual(inFlight);
    const { free } = this.#shares;
    for (const { action, bytes, user } of this.#shares.all) {
      if (action === undefined || free <= 0) continue;
      expect(user.bytes, 'who holds nothing has what is free').toBeGreaterThan(0);
      expect(bytes, 'nobody waits for what is free').toBeGreaterThanOrEqual(
        free * factor - user.bytes,
      );
    }
  }

  /** Nobody sends any more: all is answered and given back. */
  async end(withinMs: number): Promise<void> {
    for (const sender of this.senders) sender.stop();
    await this.run(withinMs);
    expect(this.senders.map(({ pending }) => pending)).toEqual(this.senders.map(() => 0));
    for (const sender of this.senders) sender.connection.closed();
    await this.log.admission.stop();
    this.log.admission.release();
    expect([this.log.inFlight, this.#shares.waiting, this.#shares.users]).toEqual([0, 0, 0]);
    const { produce, others, bytes } = this.#gate;
    expect([produce.inside, others.inside, bytes]).toEqual([0, 0, 0]);
    expect(this.log.slabs.free).toBe(this.log.slabs.count);
  }
}

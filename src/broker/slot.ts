// One request from its start until its reply is out: what its handler sees of it (RequestContext), its times,
// and what is to be freed at the end. Not for: when it starts and when its reply leaves (connection.ts).
import type { Access } from './auth/access.ts';
import type { AnyHandler, ClientConnection, RequestContext } from './handler.ts';
import type { ClientLimits } from './quotas/index.ts';
import type { OpenedRequest } from './request.ts';
import type { RequestStats } from './request-stats.ts';
import type { BrokerServices } from './services.ts';

/** A request from its start until its reply is out. */
export class Slot implements RequestContext {
  readonly connection: ClientConnection;
  readonly services: BrokerServices;
  readonly request: OpenedRequest;
  readonly receivedMs: number;
  /** As received, without the length field. */
  readonly requestBytes: number;
  /** When its handler was called; for a request without one, when it arrived. */
  startedMs: number;
  repliedMs = 0;
  /** When its decoding began, and what the front thread then spent on it: measured while there are quotas, else −1. */
  begunMs = -1;
  busyMs = -1;
  /** How long the client has to wait after the reply. */
  throttleMs = 0;
  state: 'working' | 'replied' | 'silent' | 'hang-up' = 'working';
  /** The connection closes after its reply. */
  last = false;
  pieces: readonly Uint8Array[] = [];
  bytes = 0;
  /** Until when it keeps its bytes in flight, where that isn't its reply. */
  kept: Promise<unknown> | undefined;
  #afterSend: (() => void)[] | undefined;
  readonly #stats: RequestStats;

  constructor(options: {
    readonly connection: ClientConnection;
    readonly services: BrokerServices;
    readonly stats: RequestStats;
    readonly request: OpenedRequest;
    readonly receivedMs: number;
    readonly requestBytes: number;
  }) {
    this.connection = options.connection;
    this.services = options.services;
    this.#stats = options.stats;
    this.request = options.request;
    this.receivedMs = options.receivedMs;
    this.requestBytes = options.requestBytes;
    this.startedMs = options.receivedMs;
  }

  get handler(): AnyHandler {
    return this.request.handler;
  }

  get access(): Access {
    return this.connection.access;
  }

  get apiVersion(): number {
    return this.request.envelope.version;
  }

  get clientId(): string | null {
    return this.request.envelope.clientId;
  }

  get limits(): ClientLimits | undefined {
    const { quotas } = this.services;
    if (!quotas.active) return undefined;
    return quotas.limits(this.access.who.principal.name, this.clientId ?? '');
  }

  throttle(ms: number): void {
    this.throttleMs = Math.max(this.throttleMs, ms);
  }

  afterSend(action: () => void): void {
    (this.#afterSend ??= []).push(action);
  }

  keepUntil(landed: Promise<unknown>): void {
    this.kept = landed;
  }

  endConnection(): void {
    this.last = true;
  }

  countError(code: number): void {
    this.#stats.error(this.handler.api.name, code);
  }

  /** The reply's bytes have been copied: frees what it pinned. */
  unpin(): void {
    const actions = this.#afterSend;
    this.#afterSend = undefined;
    this.pieces = [];
    if (actions !== undefined) for (const action of actions) action();
  }

  /** Frees what the reply pinned, if that hasn't happened yet. */
  finish(): void {
    this.unpin();
  }
}

// What a handler is: one API key, the versions served, and a function from request to response.
// Handlers are plain values; all they need comes through the context, so the same handler runs behind a socket
// and in a test. Not for: wire bytes (protocol/), order of replies and back-pressure (connection.ts).
import type { AnyApi, ReplyOf, RequestOf } from '../protocol/api.ts';
import type { VersionRange } from '../protocol/versions.ts';
import type { Access } from './auth/access.ts';
import type { Session } from './auth/session.ts';
import type { ClientLimits } from './quotas/index.ts';
import type { BrokerServices } from './services.ts';

/** Returned instead of a response when the client expects none (Produce with acks=0). */
export const NO_REPLY: unique symbol = Symbol('no reply');

/**
 * Returned when only a closed connection tells the client what happened (acks=0 with an error).
 * Replies to earlier requests of the connection are still sent.
 */
export const HANG_UP: unique symbol = Symbol('hang up');

export type Outcome<Response> = Response | typeof NO_REPLY | typeof HANG_UP;

/** What is known of the connection a request came by. */
export interface ClientConnection {
  /** Unique within this process. */
  readonly id: number;
  /** Name of the listener, which decides the address that Metadata tells the client. */
  readonly listener: string;
  readonly remoteAddress: string;
  /** 0 where it isn't known any more. */
  readonly remotePort: number;
  /** Aborted when the connection is gone. Writes already admitted go on regardless. */
  readonly signal: AbortSignal;
  /** Told by ApiVersions v3+ (KIP-511); empty before. */
  client: { readonly name: string; readonly version: string };
  /** Told by a Fetch (v11+, `client.rack`); undefined before. */
  rack?: string;
  /** How far the client has authenticated. */
  readonly session: Session;
  /** Who the client is (`access.who`) and what it may do; another one after it authenticated. */
  readonly access: Access;
}

export interface RequestContext {
  readonly apiVersion: number;
  readonly clientId: string | null;
  readonly connection: ClientConnection;
  readonly services: BrokerServices;
  /** What the client may do. Every handler asks it; auth/rules.ts lists what each API asks. */
  readonly access: Access;
  /**
   * Calls `action` once the last byte of the reply was taken by the kernel, or the connection is gone.
   * For what the reply pins, such as slabs.
   */
  afterSend(action: () => void): void;
  /** What the request has of the bytes in flight it keeps until then, though its reply may be out before. */
  keepUntil(landed: Promise<unknown>): void;
  /** What the client's quotas limit; undefined where it has none. */
  readonly limits: ClientLimits | undefined;
  /**
   * Tells the client to wait, and makes it: after the reply nothing of its connection is worked on for so long.
   * The longest of several counts.
   */
  throttle(ms: number): void;
  /** Closes the connection once the reply is out; nothing after it is worked on. */
  endConnection(): void;
  /** Counts an error code that the reply holds for a single partition, group or other part. */
  countError(code: number): void;
}

/**
 * One served API. Steps are always in this order: validate, work per topic and partition, response.
 * A client's mistake is an error code in the response. A FloeError that escapes `handle` is answered by
 * `failed`, or closes the connection where there is none; an AssertionError ends the process.
 */
export interface Handler<A extends AnyApi, Prepared = never> {
  /** Key, name and codecs, from protocol/. */
  readonly api: A;
  /** Served, hence advertised; within what protocol/ can decode. */
  readonly versions: VersionRange;
  /** Lowest version to advertise where it isn't the lowest served; see the handler that sets it. */
  readonly advertisedFrom?: number;
  /**
   * Promises that the bytes within a request (views into the receive buffer) are used only until `handle`
   * returns, so that the frame need not be copied. Strings and numbers are always copies.
   */
  readonly inPlace?: true;
  /** True where replies may be as large as memory allows to read: few may be unsent at a time. */
  readonly bulky?: true;
  /** True where a request may wait by design (long poll, join): it is no slow request then. */
  readonly waits?: true;
  /**
   * What has to be learnt elsewhere before the request may start; undefined where nothing has, or it can't be. Meanwhile
   * the request and all that came after it by the connection wait, so that the order stays.
   */
  prepare?(request: RequestOf<A>, context: RequestContext): Promise<Prepared> | undefined;
  /** `prepared` is what {@link prepare} has learnt. */
  handle(
    request: RequestOf<A>,
    context: RequestContext,
    prepared?: Prepared,
  ): Outcome<ReplyOf<A>> | Promise<Outcome<ReplyOf<A>>>;
  /** The response that says that the whole request failed. */
  failed?(request: RequestOf<A>, error: RequestFailure, context: RequestContext): ReplyOf<A>;
}

export interface RequestFailure {
  /** A Kafka error code. */
  readonly code: number;
  /** For people. */
  readonly message: string;
}

/** Any handler, as kept in the router's table. */
// biome-ignore lint/suspicious/noExplicitAny: handlers are invariant in their API.
export type AnyHandler = Handler<any, any>;

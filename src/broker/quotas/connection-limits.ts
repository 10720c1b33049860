// Limits on connections: how many at a time in all, per listener and per address, and how fast new ones may come.
// Asked once per accepted socket, before anything is allocated for it. A listener or broker that gets connections too
// fast lets them wait their turn, as Kafka's acceptor does; an address that makes too many has them closed, after a
// wait that slows its next attempt. Few wait at a time, the others are closed at once: a flood leaves no state.
// Not for: opening and closing sockets (server.ts), what clients do once connected (client-quotas.ts).
import type { Clock } from '../../base/clock.ts';
import type { BrokerConfig } from '../broker-config.ts';
import type { ClientQuotas } from './client-quotas.ts';
import { IP_QUOTA_KEY } from './entities.ts';
import { WindowedRate } from './rate.ts';

/** Addresses whose rate is remembered, while a quota limits them. */
const MAX_ADDRESSES = 10_000;

/** Sockets that may wait at a time, whether for their turn or to be closed. */
const MAX_WAITING = 512;

/** What becomes of a new connection. */
export type Admission =
  | { readonly kind: 'open' }
  | { readonly kind: 'refuse'; readonly reason: RefusalReason }
  /** To be opened, or closed, after a wait; `limits.waited()` when that is over. */
  | { readonly kind: 'wait'; readonly waitMs: number; readonly after: 'open' | 'close' };

/** Why a connection was closed, as the metric's label says it. */
export type RefusalReason = 'broker' | 'listener' | 'address' | 'address-rate' | 'waiting';

const OPEN: Admission = { kind: 'open' };

export interface ConnectionLimitsOptions {
  readonly config: BrokerConfig;
  readonly quotas: ClientQuotas;
  readonly clock: Clock;
}

export class ConnectionLimits {
  readonly #config: BrokerConfig;
  readonly #quotas: ClientQuotas;
  readonly #clock: Clock;
  readonly #perListener = new Map<string, number>();
  readonly #perAddress = new Map<string, number>();
  readonly #addressRates = new Map<string, WindowedRate>();
  readonly #listenerRates = new Map<string, WindowedRate>();
  #connections = 0;
  #waiting = 0;

  constructor({ config, quotas, clock }: ConnectionLimitsOptions) {
    this.#config = config;
    this.#quotas = quotas;
    this.#clock = clock;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Addresses whose rate is remembered. */
  get rememberedAddresses(): number {
    return this.#addressRates.size;
  }

  /** Whether a socket just accepted may be opened. One that waits counts as waiting until `waited`. */
  admit(listener: string, address: string): Admission {
    const reason = this.full(listener, address);
    if (reason !== undefined) return { kind: 'refuse', reason };
    const nowMs = this.#clock.monotonic();
    const closeMs = this.#addressThrottleMs(address, nowMs);
    if (closeMs > 0) return this.#wait(closeMs, 'close');
    const openMs = this.#listenerThrottleMs(listener, nowMs);
    return openMs > 0 ? this.#wait(openMs, 'open') : OPEN;
  }

  /** Which limit on connections at a time is reached, if any. */
  full(listener: string, address: string): RefusalReason | undefined {
    const { values } = this.#config;
    if (this.#connections >= values['max.connections']) return 'broker';
    const ofListener = this.#perListener.get(listener) ?? 0;
    if (ofListener >= this.#config.listenerValue(listener, 'max.connections')) return 'listener';
    const ofAddress = this.#perAddress.get(address) ?? 0;
    const own = ownLimit(values['max.connections.per.ip.overrides'], address);
    return ofAddress >= (own ?? values['max.connections.per.ip']) ? 'address' : undefined;
  }

  /** A socket no longer waits. */
  waited(): void {
    this.#waiting -= 1;
  }

  opened(listener: string, address: string): void {
    this.#connections += 1;
    this.#perListener.set(listener, (this.#perListener.get(listener) ?? 0) + 1);
    this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1);
  }

  closed(listener: string, address: string): void {
    this.#connections -= 1;
    this.#perListener.set(listener, (this.#perListener.get(listener) ?? 1) - 1);
    const left = (this.#perAddress.get(address) ?? 1) - 1;
    if (left === 0) this.#perAddress.delete(address);
    else this.#perAddress.set(address, left);
  }

  #wait(waitMs: number, after: 'open' | 'close'): Admission {
    if (this.#waiting >= MAX_WAITING) return { kind: 'refuse', reason: 'waiting' };
    this.#waiting += 1;
    return { kind: 'wait', waitMs: Math.min(waitMs, this.#quotas.windows.windowMs), after };
  }

  /** Counts a connection of an address; one that is too many isn't counted, so that the rate is that of opened ones. */
  #addressThrottleMs(address: string, nowMs: number): number {
    const { rules, windows } = this.#quotas;
    if (!rules.limitsAddresses) {
      if (this.#addressRates.size > 0) this.#addressRates.clear();
      return 0;
    }
    const limit = rules.ofAddress(address, IP_QUOTA_KEY);
    if (limit === undefined) return 0;
    let rate = this.#addressRates.get(address);
    if (rate === undefined) {
      rate = new WindowedRate(limit, windows);
      this.#makeRoom(nowMs);
      this.#addressRates.set(address, rate);
    }
    rate.limit = limit;
    const waitMs = rate.charge(1, nowMs);
    if (waitMs > 0) rate.add(-1, nowMs);
    return waitMs;
  }

  #listenerThrottleMs(listener: string, nowMs: number): number {
    const name = 'max.connection.creation.rate';
    const ofAll = this.#chargeRate('', this.#config.values[name], nowMs);
    const ofListener = this.#chargeRate(
      listener,
      this.#config.listenerValue(listener, name),
      nowMs,
    );
    return Math.max(ofAll, ofListener);
  }

  #chargeRate(of: string, limit: number, nowMs: number): number {
    if (limit >= UNLIMITED) return 0;
    let rate = this.#listenerRates.get(of);
    if (rate === undefined) {
      rate = new WindowedRate(limit, this.#quotas.windows);
      this.#listenerRates.set(of, rate);
    }
    rate.limit = limit;
    return rate.charge(1, nowMs);
  }

  #makeRoom(nowMs: number): void {
    if (this.#addressRates.size < MAX_ADDRESSES) return;
    for (const [address, rate] of this.#addressRates) {
      if (rate.idle(nowMs)) this.#addressRates.delete(address);
    }
    for (const address of this.#addressRates.keys()) {
      if (this.#addressRates.size < MAX_ADDRESSES) return;
      this.#addressRates.delete(address);
    }
  }
}

/** Kafka's default of limits that are none. */
const UNLIMITED = 2_147_483_647;

/** An address as limits name it: IPv4 within IPv6 (`::ffff:10.0.0.1`) is the same client as IPv4. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

function ownLimit(overrides: readonly string[], address: string): number | undefined {
  for (const item of overrides) {
    const colon = item.lastIndexOf(':');
    if (item.slice(0, colon) === address) return Number(item.slice(colon + 1));
  }
  return undefined;
}

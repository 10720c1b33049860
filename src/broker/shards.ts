// The shards of groups or transactional ids that this node coordinates: each comes and goes with its lease, and nobody
// is answered for a shard before it is loaded or once its lease may be another's (metadata/shards.ts, design "Groups").
// Not for: who shall have a lease (cluster/), what a shard holds (groups/, transactions/).
import { assert } from '../base/assert.ts';
import type { Component } from '../base/lifecycle.ts';
import type { Leases } from '../cluster/cluster.ts';
import type { LeaseToken } from '../metadata/leases.ts';
import { COORDINATOR_SHARDS, shardOf } from '../metadata/shards.ts';
import { ErrorCode } from '../protocol/errors.ts';

/** A shard for as long as its lease was held without a break: gained again, it is another one. */
export interface HeldShard {
  readonly shard: number;
  readonly token: LeaseToken;
  /** True once everything of it is in memory. */
  readonly loaded: boolean;
  /** True once it is over: nothing of it may be answered or written any more. */
  readonly dropped: boolean;
}

export interface ShardsOptions {
  /** The first part of the leases' names. */
  readonly kind: 'groups' | 'transactions';
  readonly leases: Leases;
  /** Brings shards into memory; what was dropped meanwhile is left out. Throws: they are given up for a while. */
  load(held: readonly HeldShard[]): Promise<void>;
  /** Answers all who wait for the shard, and forgets what is in memory. */
  drop(held: HeldShard): void;
  /** Resolves when writes under way have ended. */
  settled(): Promise<void>;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export class Shards implements Component {
  readonly #options: ShardsOptions;
  readonly #names: readonly string[];
  readonly #held: (Mutable<HeldShard> | undefined)[] = new Array(COORDINATOR_SHARDS).fill(
    undefined,
  );
  readonly #stops: (() => Promise<void>)[] = [];
  /** Gained, and not yet being loaded. */
  #gained: Mutable<HeldShard>[] = [];
  /** Will load them, together. */
  #next: Promise<void> | undefined;
  /** By shard: settles when the load that brings it has ended. */
  readonly #loads: Promise<unknown>[] = [];
  /** Settles when the latest load has ended. */
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(options: ShardsOptions) {
    this.#options = options;
    this.#names = Array.from({ length: COORDINATOR_SHARDS }, (_, n) => `${options.kind}/${n}`);
  }

  /** Wants all shards. Resolves when those that are held at once, as by one node alone, are loaded. */
  async start(): Promise<void> {
    const { leases } = this.#options;
    for (const [shard, name] of this.#names.entries())
      this.#stops.push(
        leases.want({
          name,
          role: 'coordinator',
          gained: (token) => this.#gain(shard, token),
          lost: () => this.#lose(shard),
        }),
      );
    await this.#last;
  }

  /** How many there are in memory. */
  get count(): number {
    return this.held().length;
  }

  /** True while some shard is being loaded. */
  get isLoading(): boolean {
    return this.#held.some((held) => held !== undefined && !held.loaded);
  }

  /** Shards in memory whose lease is held now. */
  held(): readonly HeldShard[] {
    return this.#held.filter((held) => held !== undefined && this.fault(held) === 0) as HeldShard[];
  }

  /** The shard of a group or transactional id, or why this node can't speak for it. */
  find(key: string): HeldShard | number {
    const held = this.#held[shardOf(key)];
    if (held === undefined) return ErrorCode.NOT_COORDINATOR;
    return this.fault(held) || held;
  }

  /** As {@link find}, undefined where it can't. */
  of(key: string): HeldShard | undefined {
    const held = this.#held[shardOf(key)];
    return held === undefined || this.fault(held) !== 0 ? undefined : held;
  }

  /** 0 while this node speaks for the shard: to be asked before every answer. */
  fault(held: HeldShard): number {
    if (this.#closed || held.dropped) return ErrorCode.NOT_COORDINATOR;
    if (this.#options.leases.held(held.token.name)?.epoch !== held.token.epoch)
      return ErrorCode.NOT_COORDINATOR;
    return held.loaded ? 0 : ErrorCode.COORDINATOR_LOAD_IN_PROGRESS;
  }

  /** {@link fault} of the shard of a group or transactional id. */
  faultOf(key: string): number {
    const held = this.#held[shardOf(key)];
    return held === undefined ? ErrorCode.NOT_COORDINATOR : this.fault(held);
  }

  /**
   * Resolves when the shard of a group or transactional id has been loaded, or was given up; undefined where it isn't being
   * loaded. Whoever asks meanwhile better waits: it is a matter of milliseconds, and not every client asks again.
   */
  loading(key: string): Promise<unknown> | undefined {
    const shard = shardOf(key);
    const held = this.#held[shard];
    return held === undefined || held.loaded ? undefined : this.#loads[shard];
  }

  /** A write was refused because the store knows a later holder: the shard is over, whatever the clock says. */
  refused(token: LeaseToken): void {
    for (const held of this.#held)
      if (held?.token.name === token.name && held.token.epoch === token.epoch) this.#drop(held);
  }

  /** Nobody is answered from now on; what waits for its write gets that answer first: NOT_COORDINATOR. */
  close(): void {
    this.#closed = true;
  }

  /** Gives all leases back. */
  async stop(): Promise<void> {
    this.close();
    await Promise.all(this.#stops.splice(0).map((stop) => stop()));
  }

  async #gain(shard: number, token: LeaseToken): Promise<void> {
    const before = this.#held[shard];
    if (before !== undefined) this.#drop(before);
    const held = { shard, token, loaded: false, dropped: false };
    this.#held[shard] = held;
    this.#gained.push(held);
    if (this.#next === undefined) {
      this.#next = this.#loadGained(this.#last);
      this.#last = this.#next.catch(() => {});
    }
    this.#loads[shard] = this.#last;
    await this.#next;
  }

  /** Loads what is gained in this turn, or while the load before it runs, together. */
  async #loadGained(before: Promise<unknown>): Promise<void> {
    await before;
    this.#next = undefined;
    const gained = this.#gained.filter(({ dropped }) => !dropped);
    this.#gained = [];
    try {
      if (gained.length > 0) await this.#options.load(gained);
      for (const held of gained) held.loaded = true;
    } catch (caught) {
      for (const held of gained) this.#drop(held);
      throw caught;
    }
  }

  async #lose(shard: number): Promise<void> {
    const held = this.#held[shard];
    if (held !== undefined) this.#drop(held);
    await this.#options.settled();
  }

  #drop(held: Mutable<HeldShard>): void {
    if (held.dropped) return;
    held.dropped = true;
    if (this.#held[held.shard] === held) this.#held[held.shard] = undefined;
    this.#options.drop(held);
    assert(this.#held[held.shard] !== held, 'a dropped shard is not held');
  }
}

/** Numbers of the shards as stores are asked for them: undefined for all of them, which is asked at once. */
export function numbersOf(held: readonly HeldShard[]): readonly number[] | undefined {
  return held.length === COORDINATOR_SHARDS ? undefined : held.map(({ shard }) => shard);
}

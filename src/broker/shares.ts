// Who may have how many bytes of something that all clients share: whoever asks for more than is left waits, and what is
// left is given out so that no connection and no user keeps the others from theirs. All connections of a user together may
// hold so many times what is free, and each of them as much as that leaves to its user: a client alone gets most of it, two
// that ask for all get half each, and something is always left for one who comes, be it another user or another connection
// of the same. Nobody's limit needs to be known before.
// Who waits is served by what they hold, users and then connections of a user, and in order of arrival where that is equal.
// A user is who it has shown to be; clients without a name are taken for one by their address.
// Not for: rates (quotas/), bytes received and not worked on (gate.ts).
import { assert } from '../base/assert.ts';

export interface SharesOptions {
  /** Bytes that nobody holds; at or below 0 nobody gets any. */
  readonly free: () => number;
  /** Calls back once when something is free that wasn't, other than by what is given back here. */
  readonly whenFree?: (action: () => void) => void;
  /** Times the free bytes that all connections of one user may hold. Above 0. */
  readonly factor: () => number;
}

interface User {
  readonly name: string;
  bytes: number;
  /** Of its connections, those that aren't closed. */
  open: number;
  /** In order of arrival. */
  readonly waiting: Set<Share>;
}

/** What one connection holds. */
export class Share {
  readonly user: User;
  bytes = 0;
  /** Called when it is its turn; only while it waits. */
  action: (() => void) | undefined;

  constructor(user: User) {
    this.user = user;
  }
}

export class Shares {
  readonly #options: SharesOptions;
  readonly #users = new Map<string, User>();
  /** Those with connections that wait, in the order in which they began to or were last served. */
  readonly #queue = new Set<User>();
  #waiting = 0;
  /** Bytes of requests that have their turn and aren't part yet of what isn't free. */
  #reserved = 0;
  #scheduled = false;
  #listening = false;

  constructor(options: SharesOptions) {
    this.#options = options;
  }

  /** Connections that wait now. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Users that hold, or may ask for, anything. */
  get users(): number {
    return this.#users.size;
  }

  /** Bytes of the user that holds most. */
  get largest(): number {
    let most = 0;
    for (const { bytes } of this.#users.values()) most = Math.max(most, bytes);
    return most;
  }

  /** A connection's share, until {@link close}. */
  open(name: string): Share {
    let user = this.#users.get(name);
    if (user === undefined) {
      user = { name, bytes: 0, open: 0, waiting: new Set() };
      this.#users.set(name, user);
    }
    user.open += 1;
    return new Share(user);
  }

  /** The connection asks for nothing more; what it holds it gives back later. */
  close(share: Share): void {
    this.forget(share);
    share.user.open -= 1;
    this.#drop(share.user);
  }

  /** Whether the connection may take more now; one that waits has to wait for its turn. */
  admits(share: Share): boolean {
    return share.action === undefined && this.#fits(share);
  }

  /** Who holds nothing may take more while anything is free: it can't wait for itself. */
  #fits({ bytes, user }: Share): boolean {
    const free = this.free;
    if (free <= 0) return false;
    if (user.bytes === 0) return true;
    return bytes < free * this.#options.factor() - user.bytes;
  }

  /** Bytes that nobody holds or will hold. */
  get free(): number {
    return this.#options.free() - this.#reserved;
  }

  /** As {@link take}, for a request that may not start yet: what it will take is nobody else's. */
  reserve(share: Share, bytes: number): void {
    this.#reserved += bytes;
    this.take(share, bytes);
  }

  /** What was reserved has been taken, or never will be. */
  unreserve(share: Share, bytes: number): void {
    this.#reserved -= bytes;
    this.give(share, bytes);
  }

  take(share: Share, bytes: number): void {
    share.bytes += bytes;
    share.user.bytes += bytes;
  }

  give(share: Share, bytes: number): void {
    share.bytes -= bytes;
    share.user.bytes -= bytes;
    assert(share.bytes >= 0 && share.user.bytes >= 0, 'bytes of a share are given back once');
    this.wake();
    this.#drop(share.user);
  }

  /** Calls `action` once when it is the connection's turn and it may take more. False when it waits already. */
  wait(share: Share, action: () => void): boolean {
    if (share.action !== undefined) return false;
    share.action = action;
    share.user.waiting.add(share);
    this.#queue.add(share.user);
    this.#waiting += 1;
    this.#listen();
    return true;
  }

  forget(share: Share): void {
    if (share.action === undefined) return;
    share.action = undefined;
    share.user.waiting.delete(share);
    if (share.user.waiting.size === 0) this.#queue.delete(share.user);
    this.#waiting -= 1;
  }

  /** Something may be free: whoever waits is looked at, once for all that is given back in this turn. */
  wake(): void {
    if (this.#scheduled || this.#waiting === 0) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#serve();
    });
  }

  /** One connection after the other, of the user that holds least; each asked once. */
  #serve(): void {
    const queues = [...this.#queue].map((user) => ({
      user,
      shares: leastFirst(user.waiting),
      next: 0,
    }));
    while (queues.length > 0 && this.free > 0) {
      let least = 0;
      for (let n = 1; n < queues.length; n += 1)
        if (queues[n]!.user.bytes < queues[least]!.user.bytes) least = n;
      const queue = queues[least]!;
      const share = queue.shares[queue.next++]!;
      if (queue.next === queue.shares.length) queues.splice(least, 1);
      const { action } = share;
      // Closed meanwhile, or not its turn yet: it keeps its place.
      if (action === undefined || !this.#fits(share)) continue;
      this.forget(share);
      // Where there is room for few users, who had some comes behind those that had none.
      this.#queue.delete(share.user);
      if (share.user.waiting.size > 0) this.#queue.add(share.user);
      action();
    }
    this.#listen();
  }

  /** Where nothing is free, none of those who wait may hold anything that will be given back. What is reserved will be. */
  #listen(): void {
    if (this.#listening || this.#waiting === 0 || this.#options.free() > 0) return;
    this.#listening = true;
    this.#options.whenFree?.(() => {
      this.#listening = false;
      this.wake();
    });
  }

  #drop(user: User): void {
    if (user.open === 0 && user.bytes === 0) this.#users.delete(user.name);
  }
}

const leastFirst = (shares: Iterable<Share>): readonly Share[] =>
  [...shares].sort((a, b) => a.bytes - b.bytes);

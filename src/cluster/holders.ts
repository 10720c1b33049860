// Who holds leases, as last looked at: where clients are sent. Only names that begin as watched ones, or as one that was
// asked about lately, are looked at. Not for: what this node may do (lease-keeper.ts).
import type { Clock } from '../base/clock.ts';
import type { LeaseHolder, LeasesMetadata } from '../metadata/leases.ts';
import type { Cluster } from './cluster.ts';

export interface HolderViewOptions {
  readonly node: { readonly cluster: Cluster };
  readonly leases: LeasesMetadata;
  readonly clock: Clock;
  readonly watched: readonly string[];
}

/** A look is good for so long; a name that isn't asked about for the second is looked at no more. */
const FRESH_MS = 1_000;
const INTEREST_MS = 60_000;

/** Most beginnings looked at beside the watched ones. */
const MAX_PREFIXES = 16;

export class HolderView {
  readonly #options: HolderViewOptions;
  #holders = new Map<string, LeaseHolder>();
  /** When each was last asked about. */
  readonly #asked = new Map<string, number>();
  #lookedMs = -Infinity;
  #looking: Promise<void> | undefined;
  #lost = false;

  constructor(options: HolderViewOptions) {
    this.#options = options;
  }

  /** The holder's node if that life of it is still on. */
  of(name: string): number | undefined {
    this.#note(prefixOf(name));
    const holder = this.#holders.get(name);
    if (holder === undefined) return undefined;
    const node = this.#options.node.cluster.nodes().find(({ nodeId }) => nodeId === holder.nodeId);
    // This node's own are known better by itself.
    const own = holder.nodeId === this.#options.node.cluster.self.nodeId;
    return node?.session === holder.session && !own ? holder.nodeId : undefined;
  }

  /** True when a watched lease that was seen has no holder: worth looking again soon. */
  get missing(): boolean {
    return this.#lost;
  }

  /** What is known may be wrong: the next look is due. */
  expire(): void {
    this.#lookedMs = -Infinity;
  }

  refreshIfDue(): Promise<void> | undefined {
    const due = this.#lost || this.#options.clock.monotonic() - this.#lookedMs >= FRESH_MS;
    return due ? this.refresh() : undefined;
  }

  /** One look at a time; callers meanwhile share it. */
  refresh(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((caught: unknown) => {
        this.expire();
        throw caught;
      })
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { leases, clock, watched } = this.#options;
    const nowMs = clock.monotonic();
    // First: what expires while the store is asked is due again.
    this.#lookedMs = nowMs;
    for (const [prefix, askedMs] of this.#asked)
      if (nowMs - askedMs > INTEREST_MS) this.#asked.delete(prefix);
    const holders = new Map<string, LeaseHolder>();
    let lost = false;
    for (const prefix of new Set([...watched, ...this.#asked.keys()])) {
      for (const { name, holder, remainingMs } of await leases.list(prefix)) {
        if (holder !== undefined && remainingMs > 0) holders.set(name, holder);
        else lost ||= watched.includes(prefix);
      }
    }
    this.#holders = holders;
    this.#lost = lost;
  }

  #note(prefix: string): void {
    if (this.#options.watched.includes(prefix)) return;
    const nowMs = this.#options.clock.monotonic();
    if (!this.#asked.has(prefix) && this.#asked.size >= MAX_PREFIXES) return;
    const known = this.#asked.has(prefix);
    this.#asked.set(prefix, nowMs);
    if (!known) this.#lookedMs = -Infinity;
  }
}

/** `groups/17` → `groups/`. */
const prefixOf = (name: string) => name.slice(0, name.indexOf('/') + 1);

// What this node keeps copies of in memory, and how it learns that another node has changed it. The follower of commits
// brings the store's versions; a domain whose version has moved is read again by its owner. The one place that wires it.
// Not for: what a copy is (its owner's `refresh()`), commits of the log (storage/log/follower.ts).
import type { Clock, Timer } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import {
  noVersions,
  type VersionDomain,
  type Versions,
  type VersionsMetadata,
} from '../metadata/versions.ts';

/** Reads the domain again: what was there before the call is in the copy when it resolves. */
export type Refresh = () => Promise<void>;

export interface CopiesOptions {
  readonly metadata: Pick<VersionsMetadata, 'current'>;
  /** By domain; what nobody keeps a copy of is left out. */
  readonly refresh: Readonly<Partial<Record<VersionDomain, Refresh>>>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Between two questions of `catchUp`, at least: look-ups of what isn't there must not press the store. */
const ASK_EVERY_MS = 100;

/** After a refresh that failed. */
const RETRY_MS = 1_000;

/** One domain's copy. */
interface Copy {
  readonly refresh: Refresh;
  /** The version that is surely in the copy, and the newest that was heard of. */
  have: number;
  wanted: number;
  running: Promise<void> | undefined;
  retry: Timer | undefined;
}

export class Copies {
  readonly #options: CopiesOptions;
  readonly #copies: ReadonlyMap<VersionDomain, Copy>;
  #asking: Promise<void> | undefined;
  #askedMs = -Infinity;
  #stopped = false;

  /** Versions begin at none: whatever was loaded before is read once more as soon as the store's are heard of. */
  constructor(options: CopiesOptions) {
    this.#options = options;
    this.#copies = new Map(
      Object.entries(options.refresh).map(([domain, refresh]) => [
        domain as VersionDomain,
        {
          refresh,
          have: noVersions[domain as VersionDomain],
          wanted: 0,
          running: undefined,
          retry: undefined,
        },
      ]),
    );
  }

  /** The store's versions, however old; returns at once. */
  seen(versions: Versions): void {
    for (const [domain, copy] of this.#copies) {
      copy.wanted = Math.max(copy.wanted, versions[domain]);
      if (copy.wanted > copy.have) void this.#run(domain, copy);
    }
  }

  /** Asks soon whether anything has changed; questions are shared and apart as those of `catchUp`. */
  look(): Promise<void> {
    return this.#ask();
  }

  /**
   * Makes sure that what other nodes did to the domain before the call is in its copy. Questions are shared, and at least
   * {@link ASK_EVERY_MS} apart. Never rejects: without the store the copy stays as it is.
   */
  async catchUp(domain: VersionDomain): Promise<void> {
    await this.#ask();
    const copy = this.#copies.get(domain);
    if (copy !== undefined && copy.wanted > copy.have) await this.#run(domain, copy);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { retry } of this.#copies.values()) retry?.cancel();
    await Promise.all([...this.#copies.values()].map(({ running }) => running));
  }

  /** One question at a time, for all who come before it is sent. */
  #ask(): Promise<void> {
    this.#asking ??= this.#askInTurn();
    return this.#asking;
  }

  async #askInTurn(): Promise<void> {
    const { clock, metadata } = this.#options;
    const waitMs = this.#askedMs + ASK_EVERY_MS - clock.monotonic();
    // In any case after this turn, so that one request's look-ups share the question.
    await (waitMs > 0 ? clock.sleep(waitMs) : Promise.resolve());
    // Who comes from now on needs a later answer.
    this.#asking = undefined;
    this.#askedMs = clock.monotonic();
    try {
      this.seen(await metadata.current());
    } catch (caught) {
      this.#warn(caught, 'could not ask whether anything has changed');
    }
  }

  #run(domain: VersionDomain, copy: Copy): Promise<void> {
    copy.running ??= this.#refresh(domain, copy);
    return copy.running;
  }

  async #refresh(domain: VersionDomain, copy: Copy): Promise<void> {
    const { clock, metrics } = this.#options;
    copy.retry?.cancel();
    while (copy.wanted > copy.have && !this.#stopped) {
      const { wanted } = copy;
      try {
        // Ends in a later turn whatever it does: who began it has kept its promise by then.
        await Promise.try(copy.refresh);
        copy.have = wanted;
        const help = 'Copies of metadata that were read again because another node changed it';
        metrics.count('floe_cluster_refreshes_total', help, { domain });
      } catch (caught) {
        this.#warn(caught, `the copy of ${domain} could not be read again`);
        if (!this.#stopped)
          copy.retry = clock.setTimer(RETRY_MS, () => void this.#run(domain, copy));
        break;
      }
    }
    // In the same turn as the last look: who hears of a version later begins anew.
    copy.running = undefined;
  }

  #warn(caught: unknown, what: string): void {
    const { code, message } = FloeError.from(caught);
    this.#options.logger.warn({ code, error: message }, what);
  }
}

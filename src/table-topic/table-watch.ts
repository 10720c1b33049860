// One look at the metadata store for all tables that this node shares with others: heads of the tables it has lanes of,
// asks for those it coordinates. Quick while records wait, slow otherwise; a look that fails is made again.
// Not for: what a head or an ask means (lane-host.ts, coordinator.ts).
import type { Clock, Timer } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import type { Logger } from '../base/log.ts';
import type { TableAsk, TableHead, TableLanesMetadata } from '../metadata/table-lanes.ts';
import type { TableSettings } from './settings/index.ts';

/** Has lanes of a table that is coordinated elsewhere. */
export interface HeadFollower {
  readonly topicId: string;
  /** Records wait. */
  busy(): boolean;
  /** Undefined: the table has no record yet. */
  follow(head: TableHead | undefined): void;
}

/** Coordinates a table that has lanes elsewhere. */
export interface AskTaker {
  readonly topicId: string;
  /** Records wait, so lanes may be at work. */
  busy(): boolean;
  /** Each ask again and again until it is answered. */
  take(asks: readonly TableAsk[]): void;
}

export interface TableWatchDeps {
  readonly words: TableLanesMetadata;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: TableSettings;
}

/** Every so many looks everybody is looked at, busy or not. */
const SLOW = 10;
/** Asks taken at one look, of all tables; the others wait for the next. */
const ASKS = 1_000;

export class TableWatch implements Component {
  readonly #deps: TableWatchDeps;
  readonly #followers = new Set<HeadFollower>();
  readonly #takers = new Set<AskTaker>();
  #timer: Timer | undefined;
  #looks = 0;
  #looking: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: TableWatchDeps) {
    this.#deps = deps;
    this.#schedule();
  }

  /** A newcomer is looked at with the next look. Returns how to stop that. */
  follow(follower: HeadFollower): () => void {
    this.#followers.add(follower);
    this.#looks = 0;
    return () => this.#followers.delete(follower);
  }

  take(taker: AskTaker): () => void {
    this.#takers.add(taker);
    return () => this.#takers.delete(taker);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#looking;
  }

  #schedule(): void {
    const { clock, settings } = this.#deps;
    this.#timer = clock.setTimer(settings['table.lanes.poll.ms'], () => {
      this.#looking = this.#look().finally(() => {
        if (!this.#stopped) this.#schedule();
      });
    });
  }

  async #look(): Promise<void> {
    const all = this.#looks % SLOW === 0;
    this.#looks += 1;
    const followers = [...this.#followers].filter((one) => all || one.busy());
    const takers = [...this.#takers].filter((one) => all || one.busy());
    try {
      await Promise.all([this.#heads(followers), this.#asks(takers)]);
    } catch (caught) {
      const { code, message } = FloeError.from(caught);
      this.#deps.logger.debug({ code, error: message }, 'tables not looked at');
    }
  }

  async #heads(followers: readonly HeadFollower[]): Promise<void> {
    if (followers.length === 0) return;
    const heads = await this.#deps.words.heads(followers.map(({ topicId }) => topicId));
    const byId = new Map(heads.map((head) => [head.topicId, head]));
    for (const one of followers) one.follow(byId.get(one.topicId));
  }

  async #asks(takers: readonly AskTaker[]): Promise<void> {
    if (takers.length === 0) return;
    const asks = await this.#deps.words.asks(
      takers.map(({ topicId }) => topicId),
      ASKS,
    );
    if (asks.length === 0) return;
    for (const one of takers) {
      const own = asks.filter(({ topicId }) => topicId === one.topicId);
      if (own.length > 0) one.take(own);
    }
  }
}

// Things with a life: started in order, stopped in reverse, each stop bounded in time.
import type { Clock } from './clock.ts';
import { FloeError } from './error.ts';
import type { Logger } from './log.ts';

export interface Component {
  /** Stops taking work, finishes or abandons what is under way, frees everything. Idempotent. */
  stop(): Promise<void>;
}

/** Runs `stop` of each component, last started first; a late or failing one is logged and passed over. */
export class Lifecycle implements Component {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #started: { name: string; component: Component; limitMs: number }[] = [];
  #stopping: Promise<void> | undefined;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Registers a started component. */
  add<T extends Component>(name: string, component: T, limitMs = 5_000): T {
    this.#started.push({ name, component, limitMs });
    return component;
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  async #stopAll(): Promise<void> {
    for (const { name, component, limitMs } of this.#started.toReversed()) {
      try {
        await within(this.#clock, limitMs, component.stop(), `stop of ${name}`);
      } catch (caught) {
        this.#logger.warn(
          { component: name, error: FloeError.from(caught).message },
          'unclean stop',
        );
      }
    }
  }
}

/** Rejects with `timeout` when `work` takes longer than `limitMs`; the work itself goes on. */
export async function within<T>(
  clock: Clock,
  limitMs: number,
  work: Promise<T>,
  doing: string,
): Promise<T> {
  let timer: { cancel(): void } | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = clock.setTimer(limitMs, () =>
      reject(new FloeError('timeout', `${doing} took longer than ${limitMs} ms`)),
    );
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    timer?.cancel();
  }
}

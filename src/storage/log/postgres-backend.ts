// The sequencer's thread of a broker in a cluster: PostgreSQL, a sequencer that commits flushes which lie in objects, and
// the upkeep that every broker does now and then (whoever is second finds it done). Nothing of it is on the local disk.
import { type Clock, systemClock, type Timer } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import { systemPrng } from '../../base/prng.ts';
import { openPostgresMetadata, type PostgresMetadata } from '../../metadata/postgres/index.ts';
import type { BackendOptions, MetadataChoice, SequencerBackend } from './sequencer-backend.ts';
import { COMMIT_HORIZON_MS, StoreSequencer } from './store-sequencer.ts';

const UPKEEP_MS = 60_000;
/** Idle producers are looked for less often: it reads through all of them. */
const EXPIRE_EVERY = 10;
const EXPIRED_AT_ONCE = 10_000;

/** @throws FloeError `unavailable`, `unsupported`, `unauthorized`: see openPostgresMetadata. */
export async function openPostgresBackend(
  choice: Extract<MetadataChoice, { kind: 'postgres' }>,
  { producerExpirationMs, logger }: BackendOptions,
): Promise<SequencerBackend> {
  const { url, settings, applicationName, unsafeServer } = choice;
  const clock = systemClock;
  const metadata = await openPostgresMetadata({
    url,
    settings,
    applicationName,
    clock,
    prng: systemPrng,
    producerExpirationMs,
    ...(unsafeServer === undefined ? {} : { unsafeServer }),
  });
  for (const finding of metadata.findings) logger.warn({ ...finding }, 'the database server');
  let sequencer: StoreSequencer | undefined;
  let upkeep: LogUpkeep | undefined;
  return {
    metadata,
    start({ settings: { giveUpMs, followHorizonMs } }) {
      const horizons = { horizonMs: followHorizonMs, producerExpirationMs };
      upkeep = new LogUpkeep({ metadata, clock, logger, ...horizons });
      const horizonMs = COMMIT_HORIZON_MS;
      sequencer = new StoreSequencer({
        metadata: metadata.log,
        clock,
        logger,
        giveUpMs,
        horizonMs,
      });
      return sequencer;
    },
    async stop() {
      upkeep?.stop();
      await sequencer?.stop();
      await metadata.close();
    },
  };
}

interface LogUpkeepOptions {
  readonly metadata: Pick<PostgresMetadata, 'log' | 'producers'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly horizonMs: number;
  readonly producerExpirationMs: number;
}

/** Tables for coming commits are made, those of old ones dropped; idle producers are forgotten. */
class LogUpkeep {
  readonly #options: LogUpkeepOptions;
  #timer: Timer | undefined;
  #stopped = false;
  #runs = 0;

  constructor(options: LogUpkeepOptions) {
    this.#options = options;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = this.#options.clock.setTimer(UPKEEP_MS, () => void this.#run());
  }

  async #run(): Promise<void> {
    const { metadata, horizonMs, producerExpirationMs, logger } = this.#options;
    try {
      await metadata.log.upkeep(horizonMs);
      this.#runs += 1;
      if (this.#runs % EXPIRE_EVERY === 0) {
        const idleSinceMs = (await metadata.log.storeMs()) - producerExpirationMs;
        await metadata.producers.expire(idleSinceMs, EXPIRED_AT_ONCE);
      }
    } catch (caught) {
      if (!this.#stopped)
        logger.warn({ error: FloeError.from(caught).message }, 'upkeep of commits failed');
    }
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }
}

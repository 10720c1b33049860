// What every part of a running node gets: its options, settings, and the real clock, chance, logs and metrics.
import type { Lifecycle } from '../../base/lifecycle.ts';
import type { LeveledLogger } from '../../base/log.ts';
import type { PrometheusMetrics } from '../../base/metrics.ts';
import type { systemIds, systemPrng } from '../../base/prng.ts';
import type { Values } from '../../base/settings.ts';
import type { SteeredClock } from '../../base/steered-clock.ts';
import type { SplitSettings } from '../../broker/auth/index.ts';
import type { OpenedCatalog } from '../../catalog/index.ts';
import type { SchemaSource } from '../../schema-registry/index.ts';
import type { OpenedLog } from '../../storage/log/open-log.ts';
import type { ObjectStore } from '../../storage/objects/index.ts';
import type { ServeOptions } from '../options.ts';
import type { serverSettings } from '../settings.ts';

export type ServerSettings = Values<typeof serverSettings>;

export interface Node {
  readonly options: ServeOptions;
  readonly settings: ServerSettings;
  readonly byListener: SplitSettings['byListener'];
  readonly listenerLimits: Readonly<Record<string, string>>;
  readonly logger: LeveledLogger;
  readonly metrics: PrometheusMetrics;
  readonly lifecycle: Lifecycle;
  /** The machine's; in a cluster corrected by the store's. */
  readonly clock: SteeredClock;
  readonly prng: typeof systemPrng;
  readonly ids: typeof systemIds;
}

/** What most parts are built on. */
export interface Parts {
  readonly opened: OpenedLog;
  readonly store: ObjectStore;
  readonly chosen: OpenedCatalog;
  readonly schemas: SchemaSource;
}

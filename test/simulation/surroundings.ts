// What simulated clients see of the world: the node they talk to, whether it still lives, time and chance. Of one node
// the world itself (world.ts); of several a seat at one of them (cluster/seat.ts), which may change.
import type { Clock } from '../../src/base/clock.ts';
import type { IdSource, Prng } from '../../src/base/prng.ts';
import type { Metadata } from '../../src/metadata/metadata.ts';
import type { OpenedFront } from '../../src/storage/log/open-front.ts';

export interface Surroundings {
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly clock: Clock;
  readonly metadata: Pick<Metadata, 'log' | 'producers'>;
  readonly node: Pick<OpenedFront, 'log' | 'directory'>;
  /** The same in all lives of the node. */
  readonly server: object;
  /** As clients use it: it may die, and answers may be lost. */
  readonly transactions: Pick<Metadata['transactions'], 'apply'>;
  /** Partitions of topics that are compacted by key. */
  readonly compacted: number[];
  /** Broken promises noticed where throwing would only look like one more fault. */
  readonly violations: string[];
  /** Changes when the node dies, or the client goes to another: what was under way is heard of no more. */
  readonly lives: number;
  /** True once the node has met its end: what its log says from then on was never heard. */
  readonly dead: boolean;
  /** Where a further client sits. */
  seat(): Surroundings;
  settle(turns?: number): Promise<void>;
  /** Lets time pass until `work` is done, at most `limitMs` of it (L8). */
  drive<T>(work: Promise<T>, limitMs?: number): Promise<T>;
}

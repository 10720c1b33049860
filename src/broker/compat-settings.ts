// Kafka's broker settings that are accepted so that configurations, tools and dashboards made for Kafka keep working.
// Some are the defaults of topic configs; the others steer what Floe doesn't have (segments, replicas, thread pools) and
// say so. All can be changed while running, as in Kafka. Not for: settings that Floe acts on (settings.ts).
import { bool, double, int, long, type Settings } from '../base/settings.ts';
import { hugeLong, LONG_MAX, optionalLong } from './setting-types.ts';

/** What a setting without effect says of itself. */
export const noEffect = (what: string) =>
  `Accepted for compatibility; without effect, since ${what}.`;

const SEGMENTS = noEffect('the log has no segments');
const FLUSHED = noEffect('every acknowledged batch is flushed already');
const RECOMPRESSION = noEffect('batches are kept as the producer compressed them');
const THREADS = noEffect('Floe’s threads are few and fixed');
const REPLICAS = noEffect('a partition has no replicas');
const LOGINS = noEffect('brokers log in nowhere');
const CLEANER = noEffect('compaction sizes its own buffers');

/** Defaults of topic configs that compaction reads. */
const cleanerSettings = {
  'log.cleaner.min.compaction.lag.ms': long({
    default: 0,
    min: 0,
    doc: 'How long a record stays uncompacted at least; min.compaction.lag.ms of a topic overrides it.',
  }),
  'log.cleaner.max.compaction.lag.ms': hugeLong({
    default: LONG_MAX,
    min: 1,
    doc: 'How long a record may stay uncompacted at most; max.compaction.lag.ms of a topic overrides it.',
  }),
  'log.cleaner.delete.retention.ms': long({
    default: 86_400_000,
    min: 0,
    doc: 'How long tombstones outlive compaction; delete.retention.ms of a topic overrides it.',
  }),
  'log.cleaner.min.cleanable.ratio': double({
    default: 0.5,
    min: 0,
    max: 1,
    doc: 'Share of a partition that may be superseded; min.cleanable.dirty.ratio of a topic overrides it.',
  }),
} as const satisfies Settings;

const segmentSettings = {
  'log.segment.bytes': int({ default: 1_073_741_824, min: 14, doc: SEGMENTS }),
  'log.roll.hours': int({ default: 168, min: 1, doc: SEGMENTS }),
  'log.roll.jitter.hours': int({ default: 0, min: 0, doc: SEGMENTS }),
  'log.index.size.max.bytes': int({ default: 10_485_760, min: 4, doc: SEGMENTS }),
  'log.index.interval.bytes': int({ default: 4_096, min: 0, doc: SEGMENTS }),
  'log.roll.ms': optionalLong({ min: 1, doc: SEGMENTS }),
  'log.roll.jitter.ms': optionalLong({ min: 0, doc: SEGMENTS }),
  'log.segment.delete.delay.ms': long({ default: 60_000, min: 0, doc: SEGMENTS }),
  'log.preallocate': bool({ default: false, doc: SEGMENTS }),
  'log.flush.interval.messages': hugeLong({ default: LONG_MAX, min: 1, doc: FLUSHED }),
  'log.flush.interval.ms': hugeLong({ default: LONG_MAX, min: 0, doc: FLUSHED }),
  'compression.gzip.level': int({ default: -1, min: -1, max: 9, doc: RECOMPRESSION }),
  'compression.lz4.level': int({ default: 9, min: 1, max: 17, doc: RECOMPRESSION }),
  'compression.zstd.level': int({ default: 3, min: -131_072, max: 22, doc: RECOMPRESSION }),
} as const satisfies Settings;

const machinerySettings = {
  'log.cleaner.threads': int({ default: 1, min: 0, doc: THREADS }),
  'log.cleaner.io.buffer.size': int({ default: 524_288, min: 0, doc: CLEANER }),
  'log.cleaner.io.buffer.load.factor': double({ default: 0.9, doc: CLEANER }),
  'num.network.threads': int({ default: 3, min: 1, doc: THREADS }),
  'num.io.threads': int({ default: 8, min: 1, doc: THREADS }),
  'background.threads': int({ default: 10, min: 1, doc: THREADS }),
  'num.recovery.threads.per.data.dir': int({ default: 2, min: 1, doc: THREADS }),
  'num.replica.fetchers': int({ default: 1, min: 1, doc: REPLICAS }),
  'leader.replication.throttled.rate': hugeLong({ default: LONG_MAX, min: 0, doc: REPLICAS }),
  'follower.replication.throttled.rate': hugeLong({ default: LONG_MAX, min: 0, doc: REPLICAS }),
  'replica.alter.log.dirs.io.max.bytes.per.second': hugeLong({
    default: LONG_MAX,
    min: 0,
    doc: REPLICAS,
  }),
  'unclean.leader.election.enable': bool({ default: false, doc: REPLICAS }),
} as const satisfies Settings;

/** Of the logins that Kafka's brokers do at one another. */
const loginSettings = {
  'sasl.kerberos.min.time.before.relogin': long({ default: 60_000, min: 0, doc: LOGINS }),
  'sasl.kerberos.ticket.renew.jitter': double({ default: 0.05, doc: LOGINS }),
  'sasl.kerberos.ticket.renew.window.factor': double({ default: 0.8, doc: LOGINS }),
  'sasl.login.refresh.buffer.seconds': int({ default: 300, min: 0, max: 3_600, doc: LOGINS }),
  'sasl.login.refresh.min.period.seconds': int({ default: 60, min: 0, max: 900, doc: LOGINS }),
  'sasl.login.refresh.window.factor': double({ default: 0.8, min: 0.5, max: 1, doc: LOGINS }),
  'sasl.login.refresh.window.jitter': double({ default: 0.05, min: 0, max: 0.25, doc: LOGINS }),
} as const satisfies Settings;

export const compatSettings = {
  ...cleanerSettings,
  ...segmentSettings,
  ...machinerySettings,
  ...loginSettings,
} as const satisfies Settings;

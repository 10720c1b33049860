// Kafka's topic configs: types, defaults, bounds, and what each means here. Those without effect say why.
// Not for: which value is in force (topic-configs.ts).
import { FloeError } from '../base/error.ts';
import {
  bool,
  double,
  int,
  list,
  long,
  oneOf,
  type Setting,
  type Settings,
} from '../base/settings.ts';
import { noEffect } from './compat-settings.ts';
import { hugeLong, LONG_MAX, partitionNumbers } from './setting-types.ts';
import type { BrokerSettings } from './settings.ts';

const SEGMENTS = noEffect('the log has no segments');
const FLUSHED = noEffect('every acknowledged batch is flushed already');
const RECOMPRESSION = noEffect('batches are kept as the producer compressed them');
const REPLICAS = noEffect('a partition has no replicas');
const TIERED = noEffect('all storage is remote, or none: there are no tiers');

/** Kafka's switch for tiered storage, which only false answers. */
function neverTrue(doc: string, remedy: string): Setting<boolean> {
  const base = bool({ default: false, doc });
  return {
    ...base,
    valid: 'false',
    parse(value) {
      if (base.parse(value)) throw new FloeError('invalid', `"true" is refused: ${remedy}`);
      return false;
    },
  };
}

const recordSettings = {
  'max.message.bytes': int({
    default: 1_048_588,
    min: 0,
    doc: 'Largest record batch as sent, after compression.',
  }),
  'message.timestamp.type': oneOf(['CreateTime', 'LogAppendTime'], {
    default: 'CreateTime',
    doc: 'CreateTime keeps the producer’s; LogAppendTime is the time of admission at this broker.',
  }),
  'message.timestamp.before.max.ms': hugeLong({
    default: LONG_MAX,
    min: 0,
    doc: 'How far a timestamp may lie in the past; not asked with LogAppendTime.',
  }),
  'message.timestamp.after.max.ms': hugeLong({
    default: 3_600_000,
    min: 0,
    doc: 'How far a timestamp may lie in the future; not asked with LogAppendTime.',
  }),
  'compression.type': oneOf(['producer', 'gzip', 'snappy', 'lz4', 'zstd', 'uncompressed'], {
    default: 'producer',
    doc: 'Every value acts as producer: batches are kept as the producer compressed them.',
  }),
  'min.insync.replicas': int({
    default: 1,
    min: 1,
    doc: 'Accepted for compatibility: an acknowledged batch is durable whatever its value.',
  }),
} as const satisfies Settings;

const cleanupSettings = {
  'cleanup.policy': list({
    default: ['delete'],
    values: ['delete', 'compact'],
    doc: 'delete: records past retention go. compact: records need a key; the newest of a key is kept.',
  }),
  'retention.ms': long({
    default: 604_800_000,
    min: -1,
    doc: 'How long records are kept, −1 for ever.',
  }),
  'retention.bytes': long({ default: -1, min: -1, doc: 'Bytes kept per partition, −1: no limit.' }),
  'delete.retention.ms': long({
    default: 86_400_000,
    min: 0,
    doc: 'How long a tombstone stays after it was first compacted (KIP-534), so that consumers that started before see it.',
  }),
  'min.compaction.lag.ms': long({
    default: 0,
    min: 0,
    doc: 'How long a record stays uncompacted at least, by its timestamp.',
  }),
  'max.compaction.lag.ms': hugeLong({
    default: LONG_MAX,
    min: 1,
    doc: 'How long a record may stay uncompacted at most; not less than min.compaction.lag.ms.',
  }),
  'min.cleanable.dirty.ratio': double({
    default: 0.5,
    min: 0,
    max: 1,
    doc: 'Share of a partition’s bytes that may wait uncompacted; past it, compaction is due.',
  }),
} as const satisfies Settings;

const compatTopicSettings = {
  'segment.bytes': int({
    default: 1_073_741_824,
    min: 14,
    doc: 'Of a compacted topic: so many bytes of a partition are sealed early, so that they can be compacted. Else without effect.',
  }),
  'segment.ms': long({
    default: 604_800_000,
    min: 1,
    doc: 'Of a compacted topic: records that wait longer than this to be sealed are sealed early. Else without effect.',
  }),
  'segment.jitter.ms': long({ default: 0, min: 0, doc: SEGMENTS }),
  'segment.index.bytes': int({ default: 10_485_760, min: 4, doc: SEGMENTS }),
  'index.interval.bytes': int({ default: 4_096, min: 0, doc: SEGMENTS }),
  'flush.messages': hugeLong({ default: LONG_MAX, min: 1, doc: FLUSHED }),
  'flush.ms': hugeLong({ default: LONG_MAX, min: 0, doc: FLUSHED }),
  'file.delete.delay.ms': long({ default: 60_000, min: 0, doc: SEGMENTS }),
  preallocate: bool({ default: false, doc: SEGMENTS }),
  'unclean.leader.election.enable': bool({ default: false, doc: REPLICAS }),
  'leader.replication.throttled.replicas': list({ default: [], doc: REPLICAS }),
  'follower.replication.throttled.replicas': list({ default: [], doc: REPLICAS }),
  'compression.gzip.level': int({ default: -1, min: -1, max: 9, doc: RECOMPRESSION }),
  'compression.lz4.level': int({ default: 9, min: 1, max: 17, doc: RECOMPRESSION }),
  'compression.zstd.level': int({ default: 3, min: -131_072, max: 22, doc: RECOMPRESSION }),
  'remote.storage.enable': neverTrue(
    'Kafka’s tiered storage: refused, since the log lies on object storage already (--storage).',
    'the log lies where --storage says; there are no tiers',
  ),
  'remote.log.copy.disable': bool({ default: false, doc: TIERED }),
  'remote.log.delete.on.disable': bool({ default: false, doc: TIERED }),
  'local.retention.ms': long({ default: -2, min: -2, doc: TIERED }),
  'local.retention.bytes': long({ default: -2, min: -2, doc: TIERED }),
} as const satisfies Settings;

/** Floe's own: what an operator stops for a while (operator-stops.ts). */
const operatorSettings = {
  'floe.read.only': bool({
    default: false,
    doc: 'While true, Produce is refused with NOT_ENOUGH_REPLICAS, so that clients wait and try again; all else goes on: Fetch, offsets, ends of transactions, DeleteRecords, table commits.',
  }),
  'floe.quarantined.partitions': partitionNumbers(
    'Partitions put aside: Produce, Fetch and look-ups by time of theirs are answered with KAFKA_STORAGE_ERROR, their table leaves them out; the topic’s others go on.',
  ),
} as const satisfies Settings;

/** By name. */
export const topicSettings = {
  ...recordSettings,
  ...cleanupSettings,
  ...operatorSettings,
  ...compatTopicSettings,
} as const satisfies Settings;

/** Which broker setting a topic config takes its default from. */
export const BROKER_SYNONYMS: Readonly<Record<string, keyof BrokerSettings>> = {
  'cleanup.policy': 'log.cleanup.policy',
  'retention.ms': 'log.retention.ms',
  'retention.bytes': 'log.retention.bytes',
  'max.message.bytes': 'message.max.bytes',
  'message.timestamp.type': 'log.message.timestamp.type',
  'message.timestamp.before.max.ms': 'log.message.timestamp.before.max.ms',
  'message.timestamp.after.max.ms': 'log.message.timestamp.after.max.ms',
  'compression.type': 'compression.type',
  'compression.gzip.level': 'compression.gzip.level',
  'compression.lz4.level': 'compression.lz4.level',
  'compression.zstd.level': 'compression.zstd.level',
  'min.insync.replicas': 'min.insync.replicas',
  'min.compaction.lag.ms': 'log.cleaner.min.compaction.lag.ms',
  'max.compaction.lag.ms': 'log.cleaner.max.compaction.lag.ms',
  'delete.retention.ms': 'log.cleaner.delete.retention.ms',
  'min.cleanable.dirty.ratio': 'log.cleaner.min.cleanable.ratio',
  'segment.bytes': 'log.segment.bytes',
  'segment.index.bytes': 'log.index.size.max.bytes',
  'index.interval.bytes': 'log.index.interval.bytes',
  'file.delete.delay.ms': 'log.segment.delete.delay.ms',
  'flush.messages': 'log.flush.interval.messages',
  'flush.ms': 'log.flush.interval.ms',
  preallocate: 'log.preallocate',
  'unclean.leader.election.enable': 'unclean.leader.election.enable',
  'floe.read.only': 'floe.read.only',
};

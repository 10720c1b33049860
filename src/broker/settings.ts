// Settings of the broker, under Kafka's names where Kafka has them, with Floe's defaults and reasons.
// Group settings are in groups/, topic configs in topic-configs.ts. Resolved once by the composition root;
// the few that may change while running do so through BrokerConfig.
import { bool, double, int, list, long, oneOf, text, type Values } from '../base/settings.ts';
import { protocolSettings } from '../protocol/settings.ts';
import { compatSettings } from './compat-settings.ts';
import { quotaSettings } from './quotas/settings.ts';
import { addressCounts, hugeLong, LONG_MAX, listenerList, optionalLong } from './setting-types.ts';
import { telemetrySettings } from './telemetry/settings.ts';

const MIB = 1024 * 1024;

/** Definitions by name; values have the type {@link BrokerSettings}. */
export const brokerSettings = {
  // Topics
  'auto.create.topics.enable': bool({
    default: true,
    doc: 'Whether a Metadata request for an unknown topic creates it. On, as in Kafka.',
  }),
  'num.partitions': int({
    default: 4,
    min: 1,
    max: 10_000,
    doc: 'Partitions of a topic created without a count. Above Kafka’s 1: a partition costs no files here.',
  }),
  'default.replication.factor': int({
    default: 1,
    min: 1,
    max: 3,
    doc: 'Told to clients only: durability comes from the log’s storage, not from replicas.',
  }),
  'delete.topic.enable': bool({ default: true, doc: 'Whether DeleteTopics is allowed.' }),
  'max.partitions.per.topic': int({
    default: 10_000,
    min: 1,
    max: 1_000_000,
    doc: 'Most partitions of one topic: a client’s typo must not fill the metadata store.',
  }),
  'max.topic.partitions': int({
    default: 100_000,
    min: 1,
    doc: 'Most partitions of all topics together: the directory of topics is held in memory.',
  }),

  // Defaults of topic configs
  'message.max.bytes': int({
    default: 1_048_588,
    min: 0,
    doc: 'Largest record batch as sent (after compression); max.message.bytes of a topic overrides it.',
  }),
  'compression.type': oneOf(['producer', 'gzip', 'snappy', 'lz4', 'zstd', 'uncompressed'], {
    default: 'producer',
    doc: 'Accepted for compatibility; every value acts as producer: batches are kept as the producer compressed them.',
  }),
  'log.cleanup.policy': list({
    default: ['delete'],
    values: ['delete', 'compact'],
    doc: 'What happens to old records; cleanup.policy of a topic overrides it.',
  }),
  'log.retention.ms': optionalLong({
    min: -1,
    doc: 'How long records are kept, −1 for ever. Unset: log.retention.minutes, then hours, decide.',
  }),
  'log.retention.minutes': optionalLong({
    min: -1,
    doc: 'How long records are kept, where log.retention.ms is unset.',
  }),
  'log.retention.hours': long({
    default: 168,
    min: -1,
    doc: 'How long records are kept, where log.retention.ms and minutes are unset: a week, as in Kafka.',
  }),
  'log.retention.bytes': long({
    default: -1,
    min: -1,
    doc: 'Bytes kept per partition, −1 without limit; retention.bytes of a topic overrides it.',
  }),
  'log.message.timestamp.type': oneOf(['CreateTime', 'LogAppendTime'], {
    default: 'CreateTime',
    doc: 'Whose clock a record’s timestamp is; message.timestamp.type of a topic overrides it.',
  }),
  'log.message.timestamp.before.max.ms': hugeLong({
    default: LONG_MAX,
    min: 0,
    doc: 'How far a record’s timestamp may lie in the past.',
  }),
  'log.message.timestamp.after.max.ms': hugeLong({
    default: 3_600_000,
    min: 0,
    doc: 'How far a record’s timestamp may lie in the future: an hour, so that a wild clock is refused.',
  }),
  'min.insync.replicas': int({
    default: 1,
    min: 1,
    doc: 'Accepted for compatibility: an acknowledged batch is durable whatever its value.',
  }),
  'floe.read.only': bool({
    default: false,
    doc: 'Read-only mode of all topics that don’t set floe.read.only themselves: Produce is refused with a retriable error, all else goes on. For a while only: producers wait as long as their delivery timeout.',
  }),

  // Connections
  'advertised.listeners': listenerList(
    'Addresses that clients are told, by listener name. Empty: the address each listener is bound to.',
  ),
  'broker.rack': text({ default: '', doc: 'Rack or zone of this node, told to clients.' }),
  'connections.max.idle.ms': long({
    default: 600_000,
    min: 1_000,
    doc: 'A connection without a request under way is closed after this long, as in Kafka.',
  }),
  'max.connections': int({
    default: 10_000,
    min: 1,
    doc: 'Most connections at a time; further ones are closed at once. Bounds file descriptors. Also per listener: listener.name.NAME.max.connections.',
  }),
  'max.connections.per.ip': int({
    default: 2_147_483_647,
    min: 0,
    doc: 'Most connections from one address at a time.',
  }),
  'max.connections.per.ip.overrides': addressCounts(
    'Most connections from certain addresses, which max.connections.per.ip then does not limit.',
  ),
  'max.connection.creation.rate': int({
    default: 2_147_483_647,
    min: 1,
    doc: 'New connections per second; faster ones wait their turn. Also listener.name.NAME.max.connection.creation.rate.',
  }),
  ...protocolSettings,
  ...quotaSettings,
  ...telemetrySettings,
  'queued.max.requests': int({
    default: 2_000,
    min: 1,
    doc: 'Requests worked on at a time over all connections, long polls not counted; past it none is read. So many Produce besides, which wait for the log and hold up nothing else.',
  }),
  'queued.max.request.bytes': long({
    default: 256 * MIB,
    min: MIB,
    doc: 'Bytes of requests received and not yet worked on, over all connections; past it large ones wait.',
  }),
  'request.share.factor': double({
    default: 8,
    min: 0.1,
    max: 1_000,
    doc: 'All connections of one user together may have so many times what is free of log.in.flight.bytes in Produce under way, and of queued.max.request.bytes in requests received, and one connection as much as that leaves to its user: a client alone gets four fifths, two that want all get half each, and there is always room for others. Smaller: more is kept free.',
  }),
  'connection.max.requests': int({
    default: 1_000,
    min: 1,
    doc: 'Requests of one connection under way at a time; past it the connection is not read. A C client sends a request per partition: with fewer than it has partitions they wait for one flush after another.',
  }),
  'connection.max.unsent.bytes': long({
    default: 4 * MIB,
    min: 64 * 1024,
    doc: 'Reply bytes a client has not read yet, past which none of its further requests is worked on.',
  }),
  'connection.progress.timeout.ms': long({
    default: 30_000,
    min: 100,
    doc: 'A request begun and not continued, or a reply not read on, for this long closes the connection.',
  }),
  'request.slow.ms': long({
    default: 1_000,
    min: 0,
    doc: 'Requests that take longer are logged with the time of each stage; long polls are not counted.',
  }),

  // Fetch
  'fetch.max.bytes': int({
    default: 55 * MIB,
    min: 1_024,
    doc: 'Most bytes of one Fetch reply, whatever the client asks for; Kafka’s default.',
  }),
  'fetch.max.wait.ms': long({
    default: 60_000,
    min: 0,
    doc: 'Longest long poll, whatever the client asks for.',
  }),
  'max.incremental.fetch.session.cache.slots': int({
    default: 1_000,
    min: 0,
    doc: 'Fetch sessions kept (KIP-227); when full, one unused for two minutes gives way, as in Kafka.',
  }),
  ...compatSettings,
} as const;

export type BrokerSettings = Values<typeof brokerSettings>;

/** How long records of a topic without retention.ms are kept: the most precise of Kafka's three settings. */
export function defaultRetentionMs(settings: BrokerSettings): number {
  const ms = settings['log.retention.ms'];
  if (ms !== null) return ms;
  const minutes = settings['log.retention.minutes'];
  if (minutes !== null) return minutes < 0 ? -1 : minutes * 60_000;
  const hours = settings['log.retention.hours'];
  return hours < 0 ? -1 : hours * 3_600_000;
}

// Settings of consumer groups, under Kafka's names where Kafka has them.
import { int, list, long, oneOf, type Values } from '../../base/settings.ts';
import { ASSIGNOR_NAMES } from './consumer/assignors.ts';
import { MIGRATION_POLICIES } from './migration.ts';

export const groupSettings = {
  'group.min.session.timeout.ms': int({
    default: 6_000,
    min: 1,
    doc: 'Shortest session timeout a member may ask for. Shorter ones detect failures sooner and cost more heartbeats.',
  }),
  'group.max.session.timeout.ms': int({
    default: 1_800_000,
    min: 1,
    doc: 'Longest session timeout a member may ask for: how long a dead member can hold its partitions.',
  }),
  'group.initial.rebalance.delay.ms': int({
    default: 3_000,
    min: 0,
    doc: 'How long an empty group waits for more members before its first generation. As in Kafka: one rebalance instead of one per starting member. 0 for development and tests.',
  }),
  'group.new.member.join.timeout.ms': int({
    default: 300_000,
    min: 1_000,
    doc: 'How long a member that has joined but was never answered is kept; it cannot heartbeat before it knows its id.',
  }),
  'group.max.size': int({
    default: 10_000,
    min: 1,
    doc: 'Members of one group. Kafka has no limit; every member costs memory and lengthens each rebalance.',
  }),
  'group.consumer.session.timeout.ms': int({
    default: 45_000,
    min: 1,
    doc: 'How long a member of the consumer protocol may be silent; consumer.session.timeout.ms of a group overrides it.',
  }),
  'group.consumer.min.session.timeout.ms': int({
    default: 45_000,
    min: 1,
    doc: 'Shortest consumer.session.timeout.ms that may be set for a group.',
  }),
  'group.consumer.max.session.timeout.ms': int({
    default: 60_000,
    min: 1,
    doc: 'Longest consumer.session.timeout.ms that may be set for a group.',
  }),
  'group.consumer.heartbeat.interval.ms': int({
    default: 5_000,
    min: 1,
    doc: 'How often members of the consumer protocol are told to report, hence how fast they learn of an assignment; consumer.heartbeat.interval.ms of a group overrides it.',
  }),
  'group.consumer.min.heartbeat.interval.ms': int({
    default: 5_000,
    min: 1,
    doc: 'Shortest consumer.heartbeat.interval.ms that may be set for a group.',
  }),
  'group.consumer.max.heartbeat.interval.ms': int({
    default: 15_000,
    min: 1,
    doc: 'Longest consumer.heartbeat.interval.ms that may be set for a group.',
  }),
  'group.consumer.max.size': int({
    default: 10_000,
    min: 1,
    doc: 'Members of one group of the consumer protocol, as group.max.size for the classic one.',
  }),
  'group.consumer.assignors': list({
    default: ['uniform', 'range'],
    values: ASSIGNOR_NAMES,
    doc: 'Assignors that members may ask for; the first serves those that ask for none.',
  }),
  'group.consumer.migration.policy': oneOf([...MIGRATION_POLICIES], {
    default: 'bidirectional',
    doc: 'Whether groups change their protocol while they have members: to the consumer protocol when its first member joins (upgrade), back to the classic one when its last member leaves (downgrade).',
  }),
  'group.max.count': int({
    default: 100_000,
    min: 1,
    doc: 'Groups that the coordinator keeps. A client that makes up a group id per run hits it before memory does.',
  }),
  'group.max.member.metadata.bytes': int({
    default: 262_144,
    min: 1_024,
    doc: 'Protocol names and metadata of one member, together. Subscriptions to thousands of topics fit.',
  }),
  'group.metadata.max.bytes': int({
    default: 4_194_304,
    min: 4_096,
    doc: 'Metadata and assignments of all members of a group, together: what is stored once per rebalance.',
  }),
  'offset.metadata.max.bytes': int({
    default: 4_096,
    min: 0,
    doc: 'Longest text that may be committed beside an offset.',
  }),
  'offsets.retention.minutes': int({
    default: 10_080,
    min: 1,
    doc: 'How long offsets are kept after their group has become empty, or after the commit for consumers without a group. Seven days, as in Kafka.',
  }),
  'offsets.retention.check.interval.ms': long({
    default: 600_000,
    min: 1,
    doc: 'How often expired offsets and empty groups are looked for.',
  }),
} as const;

export type GroupSettings = Values<typeof groupSettings>;

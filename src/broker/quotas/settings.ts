// Settings of quotas, under Kafka's names: how rates are measured. The limits themselves are client quotas
// (kafka-configs --entity-type users|clients|ips) and, for connections, settings of the broker.
import { int, type Settings, type Values } from '../../base/settings.ts';

export const quotaSettings = {
  'quota.window.num': int({
    default: 11,
    min: 2,
    max: 3_600,
    doc: 'Windows over which produce, fetch, request and connection rates are measured. More of them allow longer bursts.',
  }),
  'quota.window.size.seconds': int({
    default: 1,
    min: 1,
    max: 3_600,
    doc: 'Length of each of those windows; also the longest that a request quota makes a client wait at once.',
  }),
  'controller.quota.window.num': int({
    default: 11,
    min: 1,
    max: 3_600,
    doc: 'Windows of controller_mutation_rate: so many windows’ worth of partitions may be created or deleted at once.',
  }),
  'controller.quota.window.size.seconds': int({
    default: 1,
    min: 1,
    max: 3_600,
    doc: 'Length of each window of controller_mutation_rate.',
  }),
} as const satisfies Settings;

export type QuotaSettings = Values<typeof quotaSettings>;

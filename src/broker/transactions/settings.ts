// Settings of transactions, under Kafka's names where Kafka has them.
import { int, long, type Values } from '../../base/settings.ts';

export const transactionSettings = {
  'transaction.max.timeout.ms': int({
    default: 900_000,
    min: 1,
    doc: 'Longest transaction timeout a producer may ask for: how long a dead one can hold back readers of committed records. Longer ones are refused with INVALID_TRANSACTION_TIMEOUT.',
  }),
  'transaction.abort.timed.out.transaction.cleanup.interval.ms': int({
    default: 1_000,
    min: 1,
    doc: 'How often transactions past their timeout are looked for, to be aborted. Kafka looks every 10 s; here it costs one question from memory.',
  }),
  'transactional.id.expiration.ms': long({
    default: 604_800_000,
    min: 1,
    doc: 'How long a transactional id without an open transaction is remembered after its last use. Its producer then has to start anew.',
  }),
  'transaction.remove.expired.transaction.cleanup.interval.ms': long({
    default: 3_600_000,
    min: 1,
    doc: 'How often transactional ids that were not used for long are looked for.',
  }),
  'transactional.id.max.count': int({
    default: 100_000,
    min: 1,
    doc: 'Transactional ids that are remembered. Kafka has no limit; a client that makes up an id per run hits it before memory does. New ids are refused with POLICY_VIOLATION.',
  }),
  'transaction.max.groups': int({
    default: 1_000,
    min: 1,
    doc: 'Consumer groups whose offsets one transaction may commit. Kafka has no limit; more are refused with INVALID_REQUEST.',
  }),
} as const;

export type TransactionSettings = Values<typeof transactionSettings>;

// Settings of the metadata store on PostgreSQL: how many connections a broker takes and how long it waits.
import { int, long, type Values } from '../../base/settings.ts';

const connections = (count: number, what: string) =>
  int({
    default: count,
    min: 1,
    max: 100,
    doc: `Connections of one broker for ${what}. All purposes together × brokers must stay below max_connections.`,
  });

export const postgresSettings = {
  'metadata.postgres.commit.connections': connections(4, 'commits of the log'),
  'metadata.postgres.write.connections': connections(
    3,
    'other changes (groups, registry, catalog)',
  ),
  'metadata.postgres.read.connections': connections(3, 'reads that somebody waits for'),
  'metadata.postgres.follow.connections': connections(2, 'following the commits of others'),
  'metadata.postgres.lease.connections': connections(
    2,
    'heartbeats and leases, which must never queue',
  ),
  'metadata.postgres.background.connections': connections(
    2,
    'maintenance and start-up, which may take long',
  ),
  'metadata.postgres.connect.timeout.ms': long({
    default: 10_000,
    min: 1,
    doc: 'How long a request waits for a connection: a new one, or a free one of its purpose.',
  }),
  'metadata.postgres.statement.timeout.ms': long({
    default: 10_000,
    min: 100,
    doc: 'The server ends a statement after this (statement_timeout), so that no broker waits for ever. COMMIT is exempt: ended while it waits for a standby, it would look done.',
  }),
  'metadata.postgres.background.statement.timeout.ms': long({
    default: 300_000,
    min: 1_000,
    doc: 'The same for maintenance.',
  }),
  'metadata.postgres.lock.timeout.ms': long({
    default: 5_000,
    min: 10,
    doc: 'Longest wait for a row that another broker is changing (lock_timeout).',
  }),
  'metadata.postgres.idle.in.transaction.timeout.ms': long({
    default: 10_000,
    min: 100,
    doc: 'The server ends a transaction whose broker has fallen silent (stopped, cut off), so that its locks hold up nobody for longer.',
  }),
  'metadata.postgres.commit.timeout.ms': long({
    default: 30_000,
    min: 100,
    doc: 'How long the answer to COMMIT is awaited; past it the outcome counts as unknown and is found out by the id of the commit.',
  }),
  'metadata.postgres.attempts': int({
    default: 8,
    min: 1,
    max: 100,
    doc: 'How often a transaction is tried when the server breaks it off (serialization failure, deadlock), with growing pauses.',
  }),
  'metadata.postgres.idle.connection.ms': long({
    default: 60_000,
    min: 0,
    doc: 'An unused connection is closed after this.',
  }),
};

export type PostgresSettings = Values<typeof postgresSettings>;

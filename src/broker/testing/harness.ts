// A broker for tests: real sockets on a free port, metadata in an in-memory SQLite, the log in memory.
import { systemClock } from '../../base/clock.ts';
import { type Logger, silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import type { Log } from '../../storage/log/log.ts';
import { type Broker, type BrokerOptions, startBroker } from '../index.ts';
import { brokerSettings } from '../settings.ts';
import { MemoryLog } from './memory-log.ts';

export interface TestBroker<L extends Log = MemoryLog> {
  readonly broker: Broker;
  readonly log: L;
  readonly directory: TopicDirectory;
  readonly port: number;
  /** `127.0.0.1:port`. */
  readonly address: string;
  stop(): Promise<void>;
}

export interface TestBrokerOptions extends Partial<BrokerOptions> {
  /** Broker settings as text. */
  readonly set?: Readonly<Record<string, string>>;
  readonly logger?: Logger;
}

export async function startTestBroker(options: TestBrokerOptions = {}): Promise<TestBroker> {
  const metadata = options.metadata ?? openSqliteMetadata(':memory:');
  const directory = options.directory ?? (await TopicDirectory.load(metadata));
  const log = (options.log ??
    new MemoryLog((id) => directory.byPartition(id) !== undefined)) as MemoryLog;
  const prng = seededPrng(1);
  const broker = await startBroker({
    listeners: [{ name: 'PLAINTEXT', host: '127.0.0.1', port: 0 }],
    settings: resolveSettings(brokerSettings, options.set ?? {}),
    clusterId: 'test-cluster',
    nodeId: 0,
    logDirectory: 'memory://log',
    clock: systemClock,
    prng,
    ids: seededIds(prng),
    logger: silentLogger,
    metrics: noMetrics,
    ...options,
    metadata,
    directory,
    log,
  });
  const { port } = broker.addresses[0]!;
  return {
    broker,
    log,
    directory,
    port,
    address: `127.0.0.1:${port}`,
    async stop() {
      await broker.stop();
      await log.stop();
    },
  };
}

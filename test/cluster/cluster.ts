// A cluster for tests: PostgreSQL, an S3 double with latency, and brokers, each a process of its own that reaches both
// stores through relays of its own. Everything ends with `stop`. Brokers keep nothing: a restarted one may get an empty
// data folder. Not for: what goes wrong and when (harms.ts).
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type ChildNode, startChild } from '../../src/cli/child.ts';
import { startPostgres, type TestServer } from '../../src/metadata/postgres/testing.ts';
import { freePort } from '../free-port.ts';
import { type DoubleProcess, latencyOf, startDoubleProcess } from '../s3/double-process.ts';
import { type Relay, startRelay } from './relay.ts';

export interface ClusterOptions {
  /** Where the brokers' folders lie. */
  readonly folder: string;
  readonly brokers: number;
  /** Zones, dealt out in turn. Default: one. */
  readonly racks?: readonly string[];
  readonly putMs?: number;
  readonly getMs?: number;
  /** For every broker's command line. */
  readonly arguments?: readonly string[];
}

/** One broker, whichever process it is at the moment. */
export class Member {
  readonly nodeId: number;
  readonly kafka: string;
  readonly postgres: Relay;
  readonly s3: Relay;
  readonly #start: (member: Member) => Promise<ChildNode>;
  #node: ChildNode | undefined;

  constructor(fixed: {
    readonly nodeId: number;
    readonly kafka: string;
    readonly postgres: Relay;
    readonly s3: Relay;
    readonly start: (member: Member) => Promise<ChildNode>;
  }) {
    this.nodeId = fixed.nodeId;
    this.kafka = fixed.kafka;
    this.postgres = fixed.postgres;
    this.s3 = fixed.s3;
    this.#start = fixed.start;
  }

  get up(): boolean {
    return this.#node !== undefined;
  }

  /** @throws when it isn't up. */
  get node(): ChildNode {
    if (this.#node === undefined) throw new Error(`broker ${this.nodeId} is down`);
    return this.#node;
  }

  async start(): Promise<void> {
    this.#node = await this.#start(this);
  }

  async kill(): Promise<void> {
    const { node } = this;
    this.#node = undefined;
    await node.kill();
  }

  /** SIGTERM. @returns the exit code. */
  async stop(): Promise<number> {
    const { node } = this;
    this.#node = undefined;
    return node.stop();
  }

  /** Both stores are as far away as they should be. */
  heal(): void {
    this.postgres.trouble = {};
    this.s3.trouble = {};
  }

  end(): void {
    this.postgres.stop();
    this.s3.stop();
  }
}

export class TestCluster {
  readonly postgres: TestServer;
  readonly s3: DoubleProcess;
  readonly members: readonly Member[];

  private constructor(postgres: TestServer, s3: DoubleProcess, members: readonly Member[]) {
    this.postgres = postgres;
    this.s3 = s3;
    this.members = members;
  }

  /** Starts everything; brokers one after the other, as an operator would. */
  static async start(options: ClusterOptions): Promise<TestCluster> {
    const postgres = await startPostgres({ fsync: true });
    const s3 = await startDoubleProcess({
      latency: latencyOf(options.putMs ?? 100, options.getMs ?? 30),
    });
    const database = new URL(await postgres.empty());
    const store = new URL(s3.endpoint);
    const members: Member[] = [];
    for (let nodeId = 1; nodeId <= options.brokers; nodeId += 1) {
      members.push(
        new Member({
          nodeId,
          kafka: `127.0.0.1:${await freePort()}`,
          postgres: await startRelay({ host: database.hostname, port: Number(database.port) }),
          s3: await startRelay({ host: store.hostname, port: Number(store.port) }),
          start: (member) => startMember(member, database, options),
        }),
      );
    }
    const cluster = new TestCluster(postgres, s3, members);
    try {
      for (const member of members) await member.start();
    } catch (caught) {
      await cluster.stop();
      throw caught;
    }
    return cluster;
  }

  /** HOST:PORT of every broker, separated by commas. */
  get brokers(): string {
    return this.members.map(({ kafka }) => kafka).join(',');
  }

  /** A broker that is up. */
  get anyNode(): ChildNode {
    return this.members.find(({ up }) => up)!.node;
  }

  async stop(): Promise<void> {
    for (const member of this.members) member.heal();
    await Promise.all(this.members.map((member) => (member.up ? member.stop() : 0)));
    for (const member of this.members) member.end();
    await this.s3.stop();
    await this.postgres.stop();
  }
}

function startMember(
  { nodeId, kafka, postgres, s3 }: Member,
  database: URL,
  { folder, racks = ['a'], arguments: more = [] }: ClusterOptions,
): Promise<ChildNode> {
  const metadata = new URL(database);
  metadata.host = `${postgres.host}:${postgres.port}`;
  const settings = {
    's3.path.style': 'true',
    's3.region': 'us-east-1',
    's3.access.key.id': 'floe',
    's3.secret.access.key': 'floe-secret',
  };
  const set = Object.entries(settings).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
  // A new folder each time: nothing in it may be needed.
  const dataDir = mkdtempSync(join(folder, `broker-${nodeId}-`));
  return startChild(dataDir, [
    ...[
      '--kafka',
      kafka,
      '--node-id',
      String(nodeId),
      '--rack',
      racks[(nodeId - 1) % racks.length]!,
    ],
    ...['--metadata', metadata.href, '--storage', 's3://floe/cluster'],
    ...['--s3-endpoint', `http://${s3.host}:${s3.port}`],
    ...set,
    ...more,
  ]).catch((caught) => {
    rmSync(dataDir, { recursive: true, force: true });
    throw caught;
  });
}

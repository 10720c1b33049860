// A cluster for tests: PostgreSQL, an S3 double with latency, and brokers, each a process of its own that reaches both
// stores, and is reached by the other brokers, through relays of its own. Everything ends with `stop`. Brokers keep
// nothing: a restarted one gets an empty data folder. Not for: what goes wrong and when (harms.ts).
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { type ChildNode, startChild } from '../../src/cli/child.ts';
import { startPostgres, type TestServer } from '../../src/metadata/postgres/testing.ts';
import { freePort } from '../../src/metadata/testing/free-port.ts';
import { type DoubleProcess, latencyOf, startDoubleProcess } from '../s3/double-process.ts';
import { type Address, type Relay, startRelay } from './relay.ts';
import { ServerPair } from './server-pair.ts';

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
  /** Further `name=value` of postgresql.conf, for one server. */
  readonly database?: readonly string[];
  /** The program that brokers begin with, see {@link Member.main}. Default: this one. */
  readonly main?: string;
  /** The database has a synchronous standby. Called while it is an asynchronous one still. Default: one server. */
  readonly standby?: (url: string) => Promise<void>;
}

/** Longer than any harm lasts. */
const START_LIMIT_MS = 120_000;
const RESTART_PAUSE_MS = 500;

type Way = 'postgres' | 's3' | 'hints' | 'http';

/** One broker, whichever process it is at the moment. */
export class Member {
  readonly nodeId: number;
  readonly kafka: string;
  readonly postgres: Relay;
  readonly s3: Relay;
  /** What other brokers tell this one, and ask it for. */
  readonly hints: Relay;
  readonly http: Relay;
  readonly #start: (member: Member) => Promise<ChildNode>;
  #node: ChildNode | undefined;
  /** How far its machine's clock is ahead, from its next start on. */
  clockShiftMs = 0;
  /** What it runs from its next start on. Default: this program. */
  main: string | undefined;

  constructor(
    fixed: Pick<Member, 'nodeId' | 'kafka' | 'main' | Way> & {
      start(member: Member): Promise<ChildNode>;
    },
  ) {
    this.nodeId = fixed.nodeId;
    this.kafka = fixed.kafka;
    this.postgres = fixed.postgres;
    this.s3 = fixed.s3;
    this.hints = fixed.hints;
    this.http = fixed.http;
    this.main = fixed.main;
    this.#start = fixed.start;
  }

  get #ways(): readonly Relay[] {
    return [this.postgres, this.s3, this.hints, this.http];
  }

  /** Of its Kafka listener. */
  get port(): number {
    return Number(this.kafka.split(':').at(-1));
  }

  get up(): boolean {
    return this.#node !== undefined;
  }

  /** @throws when it isn't up. */
  get node(): ChildNode {
    if (this.#node === undefined) throw new Error(`broker ${this.nodeId} is down`);
    return this.#node;
  }

  /** How often it ended of its own accord, and what it said then. */
  readonly ends: string[] = [];

  /** The last that was asked for of {@link start} and {@link startInVain}: two processes of one broker would be its rivals. */
  #starting: Promise<unknown> = Promise.resolve();

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#starting.then(work);
    this.#starting = turn.catch(() => {});
    return turn;
  }

  /**
   * As a supervisor does: again and again, for what it needs may be away. It also comes back when it ends by itself.
   * Nothing when somebody else has started it meanwhile.
   */
  start(): Promise<void> {
    return this.#inTurn(() => this.#untilUp());
  }

  async #untilUp(): Promise<void> {
    if (this.up) return;
    const deadline = performance.now() + START_LIMIT_MS;
    for (;;) {
      try {
        this.#node = await this.#start(this);
        break;
      } catch (caught) {
        if (performance.now() > deadline) throw caught;
        await sleep(RESTART_PAUSE_MS);
      }
    }
    const node = this.#node;
    void node.exited.then((code) => {
      if (this.#node !== node) return;
      this.#node = undefined;
      this.ends.push(`broker ${this.nodeId} ended with ${code}: ${node.said().slice(-1_000)}`);
      this.start().catch(() => {});
    });
  }

  /** One attempt to start, which is to fail. @returns why it did; undefined: it was up, and is stopped again. */
  startInVain(): Promise<string | undefined> {
    return this.#inTurn(async () => {
      try {
        const node = await this.#start(this);
        await node.kill();
        return undefined;
      } catch (caught) {
        return (caught as Error).message;
      }
    });
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

  /** Both stores and the other brokers are as far away as they should be. */
  heal(): void {
    for (const relay of this.#ways) relay.trouble = {};
  }

  end(): void {
    for (const relay of this.#ways) relay.stop();
  }
}

export class TestCluster {
  readonly postgres: TestDatabase;
  readonly s3: DoubleProcess;
  readonly members: readonly Member[];

  private constructor(
    postgres: TestDatabase,
    { s3, members }: { readonly s3: DoubleProcess; readonly members: readonly Member[] },
  ) {
    this.postgres = postgres;
    this.s3 = s3;
    this.members = members;
    postgres.pair?.onPrimary((at) => {
      for (const { postgres: relay } of members) relay.target = at;
    });
  }

  /** Starts everything; brokers one after the other, as an operator would. */
  static async start(options: ClusterOptions): Promise<TestCluster> {
    const postgres = await startDatabase(options);
    const s3 = await startDoubleProcess({
      latency: latencyOf(options.putMs ?? 100, options.getMs ?? 30),
    });
    const members: Member[] = [];
    for (let nodeId = 1; nodeId <= options.brokers; nodeId += 1)
      members.push(await newMember(nodeId, { postgres, s3, options }));
    const cluster = new TestCluster(postgres, { s3, members });
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

  /** For commands that ask the stores themselves, past what is done to the brokers' ways there. */
  get stores(): readonly string[] {
    return storeArguments(this.postgres.address, this.postgres.name, this.s3.endpoint);
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

/** One server, or a primary with its standby. */
interface TestDatabase extends Pick<TestServer, 'crash' | 'stop'> {
  /** Where there is one. */
  readonly server: TestServer | undefined;
  /** Name of the database. */
  readonly name: string;
  readonly address: Address;
  readonly pair: ServerPair | undefined;
}

async function startDatabase({ standby, database = [] }: ClusterOptions): Promise<TestDatabase> {
  if (standby !== undefined) {
    const pair = await ServerPair.start(standby);
    const { pathname } = new URL(pair.url);
    return {
      name: pathname.slice(1),
      get address() {
        return pair.address;
      },
      server: undefined,
      pair,
      crash: () => pair.crash(),
      stop: () => pair.stop(),
    };
  }
  const server = await startPostgres({ fsync: true, settings: database });
  const { hostname: host, port, pathname } = new URL(await server.empty());
  return {
    name: pathname.slice(1),
    address: { host, port: Number(port) },
    server,
    pair: undefined,
    crash: () => server.crash(),
    stop: () => server.stop(),
  };
}

async function newMember(
  nodeId: number,
  { postgres, s3, options }: { postgres: TestDatabase; s3: DoubleProcess; options: ClusterOptions },
): Promise<Member> {
  const here = async () => ({ host: '127.0.0.1', port: await freePort() });
  const store = new URL(s3.endpoint);
  return new Member({
    nodeId,
    kafka: `127.0.0.1:${await freePort()}`,
    main: options.main,
    postgres: await startRelay(postgres.address),
    s3: await startRelay({ host: store.hostname, port: Number(store.port) }),
    hints: await startRelay(await here()),
    http: await startRelay(await here()),
    start: (member) => startMember(member, postgres.name, options),
  });
}

const textOf = ({ host, port }: Address): string => `${host}:${port}`;

function storeArguments(postgres: Address, database: string, s3: string): readonly string[] {
  const settings = {
    's3.path.style': 'true',
    's3.region': 'us-east-1',
    's3.access.key.id': 'floe',
    's3.secret.access.key': 'floe-secret',
  };
  return [
    ...['--metadata', `postgres://postgres@${textOf(postgres)}/${database}`],
    ...['--storage', 's3://floe/cluster', '--s3-endpoint', s3],
    ...settingArguments(settings),
  ];
}

const settingArguments = (settings: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(settings).flatMap(([name, value]) => ['--set', `${name}=${value}`]);

function startMember(
  { nodeId, kafka, postgres, s3, hints, http, clockShiftMs, main }: Member,
  database: string,
  { folder, racks = ['a'], arguments: more = [] }: ClusterOptions,
): Promise<ChildNode> {
  const settings = {
    'cluster.hints.listen': textOf(hints.target),
    'cluster.hints.advertised': textOf(hints),
    'cluster.http.advertised': textOf(http),
  };
  // A new folder each time: nothing in it may be needed.
  const dataDir = mkdtempSync(join(folder, `broker-${nodeId}-`));
  const arguments_ = [
    ...[
      '--kafka',
      kafka,
      '--node-id',
      String(nodeId),
      '--rack',
      racks[(nodeId - 1) % racks.length]!,
    ],
    ...storeArguments(postgres, database, `http://${textOf(s3)}`),
    ...['--http', textOf(http.target)],
    ...settingArguments(settings),
    ...more,
  ];
  const logFile = join(folder, `broker-${nodeId}.log`);
  const env = shiftedBy(clockShiftMs);
  return startChild(dataDir, arguments_, { env, logFile, ...(main && { main }) }).catch(
    (caught) => {
      rmSync(dataDir, { recursive: true, force: true });
      throw caught;
    },
  );
}

const SHIFTED_CLOCK = pathToFileURL(join(import.meta.dirname, 'shifted-clock.mjs')).href;

function shiftedBy(ms: number): Record<string, string> {
  if (ms === 0) return {};
  return { NODE_OPTIONS: `--import=${SHIFTED_CLOCK}`, FLOE_TEST_CLOCK_SHIFT_MS: String(ms) };
}

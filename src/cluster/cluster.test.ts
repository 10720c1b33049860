// Whole nodes, as they work together: three over one store, with real clocks, sockets and databases. How each part behaves
// in every case is tested beside it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { systemIds, systemPrng } from '../base/prng.ts';
import { resolveSettings } from '../base/settings.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { openPostgresMetadata } from '../metadata/postgres/index.ts';
import { postgresSettings } from '../metadata/postgres/settings.ts';
import { startPostgres } from '../metadata/postgres/testing.ts';
import { openSqliteMetadata } from '../metadata/sqlite/index.ts';
import { TopicDirectory } from '../metadata/topic-directory.ts';
import { Copies } from './copies.ts';
import { Hints } from './hints/index.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import { ClusterMember } from './node.ts';
import { clusterSettings } from './settings.ts';
import { countingMetrics } from './testing/metrics.ts';
import { nodeDescription } from './testing/nodes.ts';

const settings = resolveSettings(clusterSettings, {
  'cluster.heartbeat.ms': '100',
  'cluster.alive.ms': '1500',
  'cluster.lease.ms': '1500',
});
const NAMES = Array.from({ length: 30 }, (_, n) => `groups/${n}`);

class TestNode {
  readonly member: ClusterMember;
  readonly keeper: LeaseKeeper;
  readonly hints: Hints;
  readonly copies: Copies;
  readonly directory: TopicDirectory;
  /** Newest commit that others have told of. */
  commit = 0;

  private constructor(
    parts: Pick<TestNode, 'member' | 'keeper' | 'hints' | 'copies' | 'directory'>,
  ) {
    this.member = parts.member;
    this.keeper = parts.keeper;
    this.hints = parts.hints;
    this.copies = parts.copies;
    this.directory = parts.directory;
  }

  static async start(metadata: Metadata): Promise<TestNode> {
    const parts = {
      settings,
      clock: systemClock,
      prng: systemPrng,
      ids: systemIds,
      logger: silentLogger,
      metrics: countingMetrics(),
    };
    const member = await ClusterMember.join({
      ...parts,
      nodes: metadata.nodes,
      description: nodeDescription(),
      nodeId: undefined,
      onReplaced: () => expect.unreachable('it is never asleep'),
    });
    const hints = await Hints.start({
      ...parts,
      cluster: member.cluster,
      clusterId: 'cluster',
      secret: await metadata.cluster.secret(systemPrng.bytes(32)),
      listen: { host: '127.0.0.1', port: 0 },
      maxPeers: 10,
    });
    const keeper = new LeaseKeeper({
      ...parts,
      node: member,
      leases: metadata.leases,
      watched: ['groups/'],
      onChange: () => hints.changed(),
    });
    for (const name of NAMES) keeper.want({ name, role: 'coordinator', gained() {}, lost() {} });
    const directory = await TopicDirectory.load(metadata);
    const copies = new Copies({
      ...parts,
      metadata: metadata.versions,
      refresh: { topics: () => directory.refresh() },
    });
    directory.followOthers(() => copies.catchUp('topics'));
    const node = new TestNode({ member, keeper, hints, copies, directory });
    hints.onHint({
      commit(commitNumber) {
        node.commit = Math.max(node.commit, commitNumber);
      },
      news() {
        keeper.lookAgain();
        void member.refresh();
      },
      gone: (session) => member.suspect(session),
    });
    await member.announce({ listeners: {}, hints: hints.address, http: null });
    return node;
  }

  get id(): number {
    return this.member.nodeId;
  }

  held(): string[] {
    return NAMES.filter((name) => this.keeper.held(name) !== undefined);
  }

  async stop(): Promise<void> {
    await this.copies.stop();
    await this.keeper.stop();
    await this.hints.stop();
    await this.member.stop();
  }
}

interface Store {
  readonly metadata: Metadata;
  close(): Promise<void>;
}

const stores: readonly (readonly [string, () => Promise<Store>])[] = [
  [
    'SQLite',
    async () => {
      const metadata = openSqliteMetadata(':memory:');
      return { metadata, close: async () => metadata.close() };
    },
  ],
  [
    'PostgreSQL',
    async () => {
      const server = await startPostgres();
      const metadata = await openPostgresMetadata({
        url: await server.empty(),
        clock: systemClock,
        prng: systemPrng,
        settings: resolveSettings(postgresSettings, {}),
        applicationName: 'floe test',
        unsafeServer: true,
      });
      return {
        metadata,
        async close() {
          await metadata.close();
          await server.stop();
        },
      };
    },
  ],
];

describe.each(stores)('three nodes over %s', (_, open) => {
  let store: Store;
  let nodes: TestNode[] = [];

  beforeAll(async () => {
    store = await open();
    nodes = [];
    for (let n = 0; n < 3; n += 1) nodes.push(await TestNode.start(store.metadata));
  });
  afterAll(async () => {
    for (const node of nodes) await node.stop();
    await store.close();
  });

  it('each holds what it is chosen for, and all know who holds what', async () => {
    await expect.poll(() => nodes.map((node) => node.held().length)).not.toContain(0);
    await expect
      .poll(() => nodes.flatMap((node) => node.held()).toSorted())
      .toEqual(NAMES.toSorted());
    for (const node of nodes)
      for (const name of NAMES) {
        const chosen = node.member.cluster.chosen(name, 'coordinator')!.nodeId;
        await expect.poll(() => node.keeper.holder(name)).toBe(chosen);
      }
  });

  it('hears at once what another commits', async () => {
    const [one, ...others] = nodes;
    one!.hints.committed(17);
    for (const other of others) await expect.poll(() => other.commit).toBe(17);
  });

  it('finds a topic that another has just created', async () => {
    const [one, two] = nodes;
    const topicId = systemIds.uuid();
    const wish = { name: 'fresh', partitionCount: 1, config: {}, nowMs: 1 };
    const created = await one!.directory.create({ topicId, ...wish });
    expect(two!.directory.byName('fresh')).toBeUndefined();
    await two!.directory.catchUp();
    expect(two!.directory.byName('fresh')).toEqual(created);
  });

  it('hands over what it held when it drains, without waiting for any time to pass', async () => {
    const leaving = nodes.pop()!;
    const had = leaving.held();
    expect(had.length).toBeGreaterThan(0);
    await leaving.member.drain();
    await leaving.keeper.giveUp();
    leaving.hints.changed();
    expect(leaving.held()).toEqual([]);
    await expect
      .poll(() => nodes.flatMap((node) => node.held()).toSorted())
      .toEqual(NAMES.toSorted());
    for (const name of had) {
      const [state] = (await store.metadata.leases.list(name)).filter(
        (lease) => lease.name === name,
      );
      expect(state!.epoch).toBeGreaterThan(1);
    }
    await leaving.stop();
    await expect.poll(() => nodes[0]!.member.cluster.nodes().length).toBe(2);
  });
});

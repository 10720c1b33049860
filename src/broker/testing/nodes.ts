// Coordinators of several nodes in one process over one store: leases move as a test says, and what a node sends to the
// store can be held up on its way. Not for: sockets (harness.ts).
import type { ManualClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import type { GroupsMetadata } from '../../metadata/groups.ts';
import type { SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import type { TransactionsMetadata } from '../../metadata/transactions.ts';
import { GroupCoordinator, groupSettings } from '../groups/index.ts';
import { TransactionCoordinator, transactionSettings } from '../transactions/index.ts';
import { leaseBoard, type TestLeases } from './leases.ts';

/** A node's way to the store. */
export class Way {
  #closed: Promise<void> | undefined;
  #open = () => {};
  /** Calls that wait. */
  waiting = 0;
  /** True: questions about transactions fail. */
  isBroken = false;

  /** Writes from now on wait until {@link open}. */
  close(): void {
    this.#closed = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  open(): void {
    this.#closed = undefined;
    this.#open();
  }

  async pass(): Promise<void> {
    if (this.#closed === undefined) return;
    this.waiting += 1;
    await this.#closed;
    this.waiting -= 1;
  }
}

export interface TestNode {
  readonly leases: TestLeases;
  readonly directory: TopicDirectory;
  readonly groups: GroupCoordinator;
  readonly transactions: TransactionCoordinator;
  /** Held up: what the node reads of groups and writes of both. */
  readonly way: Way;
  /** Held up: questions about single transactions. */
  readonly questions: Way;
}

interface NodesOptions {
  readonly metadata: SqliteMetadata;
  readonly clock: ManualClock;
  /** Settings of groups, as text. */
  readonly set?: Readonly<Record<string, string>>;
}

/** Two nodes that hold nothing yet. */
export async function openNodes(options: NodesOptions): Promise<readonly [TestNode, TestNode]> {
  const [first, second] = leaseBoard(options.metadata.leases, 2) as [TestLeases, TestLeases];
  return [await openNode(options, first), await openNode(options, second)];
}

async function openNode(
  { metadata, clock, set }: NodesOptions,
  leases: TestLeases,
): Promise<TestNode> {
  const directory = await TopicDirectory.load(metadata);
  directory.followOthers(() => directory.refresh());
  const way = new Way();
  const questions = new Way();
  const parts = { leases, clock, logger: silentLogger, metrics: noMetrics };
  const store = transactionsOver(metadata.transactions, { way, questions });
  const groups = await GroupCoordinator.load({
    ...parts,
    metadata: groupsOver(metadata.groups, way),
    transactions: store,
    directory,
    settings: resolveSettings(groupSettings, {
      'group.initial.rebalance.delay.ms': '0',
      ...set,
    }),
    ids: seededIds(seededPrng(leases.nodeId)),
  });
  const transactions = await TransactionCoordinator.load({
    ...parts,
    metadata: store,
    groups,
    settings: resolveSettings(transactionSettings, {}),
  });
  return { leases, directory, groups, transactions, way, questions };
}

function groupsOver(groups: GroupsMetadata, way: Way): GroupsMetadata {
  return {
    offsets: (groupIds) => groups.offsets(groupIds),
    async load(shards) {
      await way.pass();
      return groups.load(shards);
    },
    async write(changes, leases) {
      await way.pass();
      return groups.write(changes, leases);
    },
  };
}

function transactionsOver(
  transactions: TransactionsMetadata,
  { way, questions }: Pick<TestNode, 'way' | 'questions'>,
): TransactionsMetadata {
  return new Proxy(transactions, {
    get(target, name: keyof TransactionsMetadata) {
      const method = target[name].bind(target) as (...args: unknown[]) => Promise<unknown>;
      if (name === 'describe')
        return async (...args: unknown[]) => {
          await questions.pass();
          if (way.isBroken) throw new FloeError('unavailable', 'the store is away');
          return method(...args);
        };
      if (name !== 'apply') return method;
      return async (...args: unknown[]) => {
        await way.pass();
        return method(...args);
      };
    },
  });
}

export async function stopNodes(nodes: readonly TestNode[]): Promise<void> {
  for (const { way, questions } of nodes) for (const each of [way, questions]) each.open();
  await Promise.all(
    nodes.map(async ({ groups, transactions }) => {
      await transactions.stop();
      await groups.stop();
    }),
  );
}

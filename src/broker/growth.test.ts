import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import type { Cluster, ClusterNode } from '../cluster/cluster.ts';
import { chooseNode } from '../cluster/index.ts';
import { clusterNode } from '../cluster/testing/nodes.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { produceApi } from '../protocol/messages/00-produce.ts';
import { fetchApi } from '../protocol/messages/01-fetch.ts';
import { sendClientsAway } from './draining.ts';
import { SEND_ON_MS, sendClientsOn } from './growth.ts';
import { startTestBroker, type TestBroker } from './testing/harness.ts';
import { RawClient } from './testing/raw-client.ts';
import { batchOf, fetchRequest, produceRequest } from './testing/requests.ts';

const SETTLE_MS = 2_000;
const { NOT_LEADER_OR_FOLLOWER, FETCH_SESSION_ID_NOT_FOUND } = ErrorCode;

let clock: ManualClock;
let nodes: ClusterNode[];
let changed: () => void;
let broker: TestBroker;
let client: RawClient;
let end: () => void;
/** A topic of one partition, by the broker that leads it once there are two. */
let ledBy: readonly [own: string, other: string];

beforeEach(async () => {
  clock = new ManualClock();
  nodes = [clusterNode(0)];
  const cluster: Cluster = {
    get self() {
      return nodes[0]!;
    },
    nodes: () => nodes,
    chosen: (key, _role, rack) => chooseNode(key, nodes, rack),
    level: () => 1,
    onChange(listener) {
      changed = listener;
      return () => {};
    },
  };
  const leases = { held: () => undefined, holder: () => undefined, want: () => async () => {} };
  broker = await startTestBroker({ clock, cluster: { cluster, leases } });
  const both = [clusterNode(0), clusterNode(1)];
  const names: [string?, string?] = [];
  for (let n = 0; names[0] === undefined || names[1] === undefined; n += 1) {
    const topicId = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
    const topic = { topicId, name: `t${n}`, partitionCount: 1, config: {}, nowMs: 1 };
    const created = await broker.directory.create(topic);
    names[chooseNode(`p/${created.partitions[0]}`, both, null)!.nodeId as 0 | 1] = topic.name;
  }
  ledBy = names as [string, string];
  client = await RawClient.connect(broker.port);
  end = sendClientsOn(broker.broker.services, { cluster, settleMs: SETTLE_MS });
});

afterEach(async () => {
  end();
  client.close();
  await broker.stop();
});

async function come(): Promise<void> {
  nodes = [clusterNode(0), clusterNode(1)];
  changed();
  await clock.advance(SETTLE_MS);
}

async function produce(topic: string): Promise<number> {
  const { responses } = await client.call(produceApi, 9, {
    transactionalId: null,
    ...produceRequest(topic, batchOf(['a'])),
  });
  return responses[0]!.partitionResponses[0]!.errorCode;
}

const fetch = (topics: readonly string[], session = { sessionId: 0, sessionEpoch: 0 }) => {
  const request = fetchRequest(topics.map((topic) => ({ topic, offset: 0 })));
  return client.call(fetchApi, 11, { ...request, maxWaitMs: 0, ...session });
};

async function fetched(topic: string): Promise<number> {
  return (await fetch([topic])).responses[0]!.partitions[0]!.errorCode;
}

test('after a broker came, clients of its partitions are sent on to it for a moment', async () => {
  const [own, other] = ledBy;
  expect(await produce(other)).toBe(0);
  nodes = [clusterNode(0), clusterNode(1)];
  changed();
  // Others may not know of it yet, and would send the client back.
  await clock.advance(SETTLE_MS - 1);
  expect(await produce(other)).toBe(0);
  await clock.advance(1);
  expect(await produce(other)).toBe(NOT_LEADER_OR_FOLLOWER);
  expect(await produce(own)).toBe(0);
  await clock.advance(SEND_ON_MS);
  expect(await produce(other)).toBe(0);
});

test('readers are sent on at once, and polls that wait end: two brokers never give a client the same', async () => {
  const [own, other] = ledBy;
  const { fetchWaits } = broker.broker.services;
  expect(await fetched(other)).toBe(0);
  const request = fetchRequest([{ topic: other, offset: 0 }]);
  const polling = client.call(fetchApi, 11, { ...request, maxWaitMs: 60_000 });
  await expect.poll(() => fetchWaits.waiting).toBe(1);
  nodes = [clusterNode(0), clusterNode(1)];
  changed();
  const { errorCode, responses } = await polling;
  expect([errorCode, responses[0]!.partitions[0]!.errorCode]).toEqual([0, 0]);
  expect(fetchWaits.waiting).toBe(0);
  expect(await fetched(other)).toBe(NOT_LEADER_OR_FOLLOWER);
  expect(await fetched(own)).toBe(0);
  await clock.advance(SETTLE_MS + SEND_ON_MS);
  expect(await fetched(other)).toBe(0);
});

test('a session of Fetch is asked once for all that it reads, and goes on where nothing has moved', async () => {
  const [own, other] = ledBy;
  const before = await fetch([own, other]);
  const kept = await fetch([own]);
  await come();
  const next = await fetch([], { sessionId: before.sessionId, sessionEpoch: 1 });
  expect(next.errorCode).toBe(FETCH_SESSION_ID_NOT_FOUND);
  const whole = await fetch([own, other]);
  expect(whole.responses.map(({ partitions }) => partitions[0]!.errorCode)).toEqual([
    NOT_LEADER_OR_FOLLOWER,
    NOT_LEADER_OR_FOLLOWER,
  ]);
  const again = await fetch([own]);
  expect(again.responses[0]!.partitions[0]!.errorCode).toBe(0);
  const { sessionId } = again;
  expect(sessionId).not.toBe(kept.sessionId);
  expect((await fetch([], { sessionId, sessionEpoch: 1 })).errorCode).toBe(0);
});

test('what nobody may be told of is answered as always', async () => {
  await come();
  expect(await produce('unknown')).toBe(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
});

test('a broker that goes, drains or comes again while one is waited for changes nothing', async () => {
  const [, other] = ledBy;
  await come();
  nodes = [clusterNode(0)];
  changed();
  expect(await produce(other)).toBe(0);
  nodes = [clusterNode(0), clusterNode(1, { draining: true })];
  changed();
  await clock.advance(SETTLE_MS + SEND_ON_MS);
  expect(await produce(other)).toBe(0);
});

test('a broker that begins to drain meanwhile goes on draining', async () => {
  const [own] = ledBy;
  await come();
  sendClientsAway(broker.broker.services);
  await clock.advance(SEND_ON_MS);
  expect(await produce(own)).toBe(NOT_LEADER_OR_FOLLOWER);
});

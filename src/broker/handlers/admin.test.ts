// What tools ask of a Kafka that Floe has no use for: replicas, elections, a metadata quorum, feature levels.
// Codes are those recorded from Kafka 4.3.1 for a topic with one replica.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ErrorCode } from '../../protocol/errors.ts';
import { alterReplicaLogDirsApi } from '../../protocol/messages/34-alter-replica-log-dirs.ts';
import { electLeadersApi } from '../../protocol/messages/43-elect-leaders.ts';
import { alterPartitionReassignmentsApi } from '../../protocol/messages/45-alter-partition-reassignments.ts';
import { listPartitionReassignmentsApi } from '../../protocol/messages/46-list-partition-reassignments.ts';
import { describeQuorumApi } from '../../protocol/messages/55-describe-quorum.ts';
import { updateFeaturesApi } from '../../protocol/messages/57-update-features.ts';
import { describeTopicPartitionsApi } from '../../protocol/messages/75-describe-topic-partitions.ts';
import { startTestBroker, type TestBroker } from '../testing/harness.ts';
import { RawClient } from '../testing/raw-client.ts';
import { FEATURES } from './18-api-versions.ts';

let test: TestBroker;
let client: RawClient;

beforeAll(async () => {
  test = await startTestBroker({ nodeId: 1 });
  client = await RawClient.connect(test.port);
  const topic = { topicId: '00000000-0000-4000-8000-000000000001', name: 'pr', config: {} };
  await test.directory.create({ ...topic, partitionCount: 2, nowMs: 0 });
});

afterAll(async () => {
  client.close();
  await test.stop();
});

const UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;

describe('ElectLeaders', () => {
  const elect = (electionType: number, all = false) =>
    client.call(electLeadersApi, 2, {
      electionType,
      topicPartitions: all
        ? null
        : [
            { topic: 'pr', partitions: [0, 7] },
            { topic: 'nope', partitions: [0] },
          ],
      timeoutMs: 1_000,
    });

  const codes = ({ replicaElectionResults }: Awaited<ReturnType<typeof elect>>) =>
    replicaElectionResults.flatMap(({ partitionResult }) =>
      partitionResult.map(({ errorCode }) => errorCode),
    );

  it.each([0, 1])('needs none of type %d', async (type) => {
    const reply = await elect(type);
    expect(reply.errorCode).toBe(0);
    expect(codes(reply)).toEqual([ErrorCode.ELECTION_NOT_NEEDED, UNKNOWN, UNKNOWN]);
  });

  it('tells nothing of all partitions, and knows no third type', async () => {
    expect(await elect(0, true)).toMatchObject({ errorCode: 0, replicaElectionResults: [] });
    const reply = await elect(5);
    expect(reply.errorCode).toBe(ErrorCode.INVALID_REQUEST);
    expect(codes(reply)).toEqual([42, 42, 42]);
  });
});

describe('reassignments', () => {
  it.each<[readonly number[] | null, number]>([
    [null, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS],
    [[1], 0],
    [[5], ErrorCode.INVALID_REPLICA_ASSIGNMENT],
    [[1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT],
    [[], ErrorCode.INVALID_REPLICA_ASSIGNMENT],
  ])('to %j', async (replicas, code) => {
    const { errorCode, responses } = await client.call(alterPartitionReassignmentsApi, 1, {
      timeoutMs: 1_000,
      topics: [
        {
          name: 'pr',
          partitions: [
            { partitionIndex: 0, replicas },
            { partitionIndex: 9, replicas },
          ],
        },
        { name: 'nope', partitions: [{ partitionIndex: 0, replicas }] },
      ],
    });
    expect(errorCode).toBe(0);
    expect(
      responses.flatMap(({ partitions }) => partitions.map((partition) => partition.errorCode)),
    ).toEqual([code, UNKNOWN, UNKNOWN]);
  });

  it('are never under way', async () => {
    const reply = await client.call(listPartitionReassignmentsApi, 0, { topics: null });
    expect(reply).toMatchObject({ errorCode: 0, topics: [] });
  });

  it('between log directories end where the log is', async () => {
    const move = async (path: string, name: string) => {
      const dirs = [{ path, topics: [{ name, partitions: [0] }] }];
      const { results } = await client.call(alterReplicaLogDirsApi, 2, { dirs });
      return results[0]!.partitions[0]!.errorCode;
    };
    expect(await move('memory://log', 'pr')).toBe(0);
    expect(await move('memory://log', 'nope')).toBe(UNKNOWN);
    expect(await move('/elsewhere', 'pr')).toBe(ErrorCode.LOG_DIR_NOT_FOUND);
  });
});

describe('DescribeQuorum', () => {
  it.each([0, 1, 2])('v%d shows a quorum of one, and no other', async (version) => {
    const { errorCode, topics, nodes } = await client.call(describeQuorumApi, version, {
      topics: [
        { topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] },
        { topicName: 'pr', partitions: [{ partitionIndex: 0 }] },
      ],
    });
    expect(errorCode).toBe(0);
    expect(topics[0]!.partitions[0]).toMatchObject({
      errorCode: 0,
      leaderId: 1,
      currentVoters: [{ replicaId: 1 }],
      observers: [],
    });
    expect(topics[1]!.partitions[0]!.errorCode).toBe(UNKNOWN);
    expect(nodes.map(({ nodeId }) => nodeId)).toEqual(version === 2 ? [1] : []);
  });
});

describe('UpdateFeatures', () => {
  const update = (feature: string, maxVersionLevel: number, version = 1) =>
    client.call(updateFeaturesApi, version, {
      featureUpdates: [{ feature, maxVersionLevel, allowDowngrade: false }],
      validateOnly: true,
    });

  it('takes the level that a feature has', async () => {
    for (const { name, level } of FEATURES) {
      const { errorCode, results } = await update(name, level);
      expect([errorCode, results]).toEqual([
        0,
        [{ feature: name, errorCode: 0, errorMessage: null }],
      ]);
      expect((await update(name, level, 2)).results).toEqual([]);
    }
  });

  it('refuses any other, saying why', async () => {
    const unknown = await update('no.such.feature', 1);
    expect(unknown).toMatchObject({ errorCode: ErrorCode.INVALID_UPDATE_VERSION, results: [] });
    expect(unknown.errorMessage).toMatch(/no\.such\.feature/);
    const [known] = FEATURES;
    const other = await update(known!.name, known!.level + 1);
    expect(other.errorMessage).toMatch(/never changes/);
  });
});

it('partitions have no other eligible leaders, in lists that are not null', async () => {
  const { topics } = await client.call(describeTopicPartitionsApi, 0, { topics: [{ name: 'pr' }] });
  expect(topics[0]!.partitions[0]).toMatchObject({ eligibleLeaderReplicas: [], lastKnownElr: [] });
});

it('a page of partitions begins at none below 0', async () => {
  const { topics } = await client.call(describeTopicPartitionsApi, 0, {
    topics: [{ name: 'pr' }],
    cursor: { topicName: 'pr', partitionIndex: -1 },
  });
  expect(topics).toMatchObject([{ name: 'pr', errorCode: ErrorCode.INVALID_REQUEST }]);
});

// What a broker answers to requests of groups that no well-behaved client sends, and to the turns of a rebalance:
// plain requests over one connection, answers as plain data. Run once against Apache Kafka to record what it says
// (kafka-answers.json), and by the test beside against our own broker. Names are fresh in each run, so that a broker
// with history answers alike; ids of topics and members made by the broker are replaced by words.
import { readFileSync } from 'node:fs';
import { systemClock } from '../../../base/clock.ts';
import { offsetCommitApi } from '../../../protocol/messages/08-offset-commit.ts';
import { offsetFetchApi } from '../../../protocol/messages/09-offset-fetch.ts';
import { findCoordinatorApi } from '../../../protocol/messages/10-find-coordinator.ts';
import { joinGroupApi } from '../../../protocol/messages/11-join-group.ts';
import { heartbeatApi } from '../../../protocol/messages/12-heartbeat.ts';
import { leaveGroupApi } from '../../../protocol/messages/13-leave-group.ts';
import { syncGroupApi } from '../../../protocol/messages/14-sync-group.ts';
import { describeGroupsApi } from '../../../protocol/messages/15-describe-groups.ts';
import { listGroupsApi } from '../../../protocol/messages/16-list-groups.ts';
import { createTopicsApi } from '../../../protocol/messages/19-create-topics.ts';
import { createPartitionsApi } from '../../../protocol/messages/37-create-partitions.ts';
import { deleteGroupsApi } from '../../../protocol/messages/42-delete-groups.ts';
import { offsetDeleteApi } from '../../../protocol/messages/47-offset-delete.ts';
import { consumerGroupHeartbeatApi } from '../../../protocol/messages/68-consumer-group-heartbeat.ts';
import { consumerGroupDescribeApi } from '../../../protocol/messages/69-consumer-group-describe.ts';
import {
  decodeAssignment,
  encodeAssignment,
  encodeSubscription,
} from '../../../protocol/messages/consumer-protocol.ts';
import { RawClient } from '../../testing/raw-client.ts';

type Beat = Parameters<typeof full>[0];
type Answer = unknown;

/** A whole heartbeat, as a member sends it when it joins. */
function full(set: {
  readonly memberId?: string;
  readonly memberEpoch?: number;
  readonly groupId?: string;
  readonly instanceId?: string | null;
  readonly rackId?: string | null;
  readonly rebalanceTimeoutMs?: number;
  readonly subscribedTopicNames?: readonly string[] | null;
  readonly subscribedTopicRegex?: string | null;
  readonly serverAssignor?: string | null;
  readonly owned?: readonly number[] | null;
}) {
  return {
    memberEpoch: 0,
    rebalanceTimeoutMs: 30_000,
    owned: [] as readonly number[] | null,
    ...set,
  };
}

export interface Run {
  /** Part of all names. */
  readonly run: string;
  /** Apache Kafka's coordinators learn of topics some hundred milliseconds after their creation. */
  readonly settleMs: number;
}

class Scene {
  readonly #client: RawClient;
  readonly #settleMs: number;
  readonly group: string;
  topic: string;
  topicId = '';
  readonly #topics = new Map<string, string>();
  /** What each member was told last. */
  readonly #epochs = new Map<string, number>();

  constructor(client: RawClient, name: string, { run, settleMs }: Run) {
    this.#client = client;
    this.#settleMs = settleMs;
    this.group = `${run}-${name}`;
    this.topic = `${run}-${name}-t`;
  }

  call: RawClient['call'] = (api, version, request) => this.#client.call(api, version, request);

  async createTopic(partitions = 2, name = this.topic): Promise<string> {
    const { topics } = await this.call(createTopicsApi, 7, {
      topics: [
        { name, numPartitions: partitions, replicationFactor: 1, assignments: [], configs: [] },
      ],
      timeoutMs: 10_000,
      validateOnly: false,
    });
    if (topics[0]!.errorCode !== 0) throw new Error(`${name}: ${topics[0]!.errorCode}`);
    this.#topics.set(topics[0]!.topicId, name === this.topic ? 't' : 't2');
    if (name === this.topic) this.topicId = topics[0]!.topicId;
    await systemClock.sleep(this.#settleMs);
    return topics[0]!.topicId;
  }

  async beat(set: Beat, version = 1): Promise<Answer> {
    const { owned, ...rest } = full(set);
    const reply = await this.call(consumerGroupHeartbeatApi, version, {
      groupId: this.group,
      memberId: 'm',
      subscribedTopicNames: [this.topic],
      ...rest,
      topicPartitions:
        owned === null
          ? null
          : owned.length === 0
            ? []
            : [{ topicId: this.topicId, partitions: [...owned] }],
    } as never);
    const { errorCode, memberId, memberEpoch, assignment } = reply;
    if (errorCode !== 0) return { errorCode };
    if (memberEpoch > 0) this.#epochs.set(set.memberId ?? 'm', memberEpoch);
    return {
      errorCode,
      ...(memberId === (set.memberId ?? 'm') ? {} : { memberId: 'made' }),
      memberEpoch,
      assignment:
        assignment === null
          ? null
          : Object.fromEntries(
              assignment.topicPartitions.map(({ topicId, partitions }) => [
                this.#topics.get(topicId) ?? topicId,
                [...partitions].sort(),
              ]),
            ),
    };
  }

  /** The epoch a member was told last. */
  epoch(memberId = 'm'): number {
    return this.#epochs.get(memberId) ?? 1;
  }

  /** A heartbeat that says nothing new, in the member's epoch. */
  idle(set: Beat = {}): Promise<Answer> {
    return this.beat({
      memberEpoch: this.epoch(set.memberId),
      rebalanceTimeoutMs: -1,
      subscribedTopicNames: null,
      owned: null,
      ...set,
    });
  }

  async join(set: object = {}, version = 9) {
    const reply = await this.call(joinGroupApi, version, {
      groupId: this.group,
      sessionTimeoutMs: 10_000,
      rebalanceTimeoutMs: 30_000,
      memberId: '',
      groupInstanceId: null,
      protocolType: 'consumer',
      protocols: [{ name: 'range', metadata: encodeSubscription({ topics: [this.topic] }) }],
      reason: null,
      ...set,
    } as never);
    return reply;
  }

  async sync(set: object) {
    const { errorCode, assignment } = await this.call(syncGroupApi, 5, {
      groupId: this.group,
      groupInstanceId: null,
      protocolType: 'consumer',
      protocolName: 'range',
      assignments: [],
      ...set,
    } as never);
    if (errorCode !== 0 || assignment.length === 0) return { errorCode };
    return {
      errorCode,
      owned: decodeAssignment(assignment).assignedPartitions.map(({ partitions }) =>
        [...partitions].sort(),
      ),
    };
  }

  async classicBeat(memberId: string, generationId: number): Promise<number> {
    const request = { groupId: this.group, generationId, memberId, groupInstanceId: null };
    return (await this.call(heartbeatApi, 4, request)).errorCode;
  }

  async leaveClassic(memberId: string): Promise<Answer> {
    const members = [{ memberId, groupInstanceId: null, reason: null }];
    const reply = await this.call(leaveGroupApi, 5, { groupId: this.group, members } as never);
    return [reply.errorCode, ...reply.members.map((member) => member.errorCode)];
  }

  async commit(memberId: string, epoch: number, version = 9, partitionIndex = 0): Promise<Answer> {
    const reply = await this.call(offsetCommitApi, version, {
      groupId: this.group,
      generationIdOrMemberEpoch: epoch,
      memberId,
      groupInstanceId: null,
      topics: [
        {
          name: this.topic,
          topicId: this.topicId,
          partitions: [
            { partitionIndex, committedOffset: 0, committedLeaderEpoch: 3, committedMetadata: 'x' },
          ],
        },
      ],
    } as never);
    return reply.topics[0]!.partitions[0]!.errorCode;
  }

  async fetchOffsets(memberId: string | null, memberEpoch: number, version = 9): Promise<Answer> {
    const reply = await this.call(offsetFetchApi, version, {
      groups: [
        {
          groupId: this.group,
          memberId,
          memberEpoch,
          topics: [{ name: this.topic, topicId: this.topicId, partitionIndexes: [0, 1] }],
        },
      ],
      requireStable: true,
    } as never);
    const { errorCode, topics } = reply.groups[0]!;
    return [
      errorCode,
      ...topics.flatMap(({ partitions }) =>
        partitions.map((each) => [
          each.errorCode,
          Number(each.committedOffset),
          each.committedLeaderEpoch,
        ]),
      ),
    ];
  }

  async describe(): Promise<Answer> {
    const reply = await this.call(consumerGroupDescribeApi, 1, {
      groupIds: [this.group],
      includeAuthorizedOperations: false,
    });
    const group = reply.groups[0]!;
    const list = (assignment: (typeof group.members)[number]['assignment']) =>
      assignment.topicPartitions.flatMap(({ topicName, partitions }) =>
        [...partitions].sort().map((index) => `${topicName.slice(this.group.length + 1)}-${index}`),
      );
    return {
      errorCode: group.errorCode,
      hasMessage: group.errorMessage !== null,
      state: group.groupState,
      epochs: [group.groupEpoch, group.assignmentEpoch],
      assignor: group.assignorName,
      members: group.members
        .map((member) => ({
          member: [
            member.memberId,
            member.instanceId,
            member.rackId,
            member.memberEpoch,
            member.memberType,
          ],
          subscribed: [member.subscribedTopicNames.length, member.subscribedTopicRegex],
          assignment: list(member.assignment),
          target: list(member.targetAssignment),
        }))
        .sort((a, b) => String(a.member[0]).localeCompare(String(b.member[0]))),
    };
  }

  async describeClassic(version: number): Promise<Answer> {
    const reply = await this.call(describeGroupsApi, version, { groups: [this.group] } as never);
    const { errorCode, errorMessage, groupState, protocolType, members } = reply.groups[0]!;
    return [errorCode, (errorMessage ?? null) !== null, groupState, protocolType, members.length];
  }

  async listed(typesFilter: string[] = [], statesFilter: string[] = []): Promise<Answer> {
    const { groups } = await this.call(listGroupsApi, 5, { statesFilter, typesFilter });
    const own = groups.find(({ groupId }) => groupId === this.group);
    return own === undefined ? null : [own.protocolType, own.groupState, own.groupType];
  }

  async deleteGroup(): Promise<number> {
    const { results } = await this.call(deleteGroupsApi, 2, { groupsNames: [this.group] });
    return results[0]!.errorCode;
  }

  async deleteOffsets(topic = this.topic): Promise<Answer> {
    const { errorCode, topics } = await this.call(offsetDeleteApi, 0, {
      groupId: this.group,
      topics: [{ name: topic, partitions: [{ partitionIndex: 0 }, { partitionIndex: 9 }] }],
    });
    const partitions = topics.flatMap((each) => each.partitions);
    const byIndex = [...partitions].sort((a, b) => a.partitionIndex - b.partitionIndex);
    return [errorCode, ...byIndex.map((each) => each.errorCode)];
  }

  async addPartitions(count: number): Promise<void> {
    await this.call(createPartitionsApi, 3, {
      topics: [{ name: this.topic, count, assignments: null }],
      timeoutMs: 10_000,
      validateOnly: false,
    });
    await systemClock.sleep(this.#settleMs);
  }
}

/** In order: each runs alone, on a group and a topic of its own. */
const SCENES: Readonly<Record<string, (scene: Scene) => Promise<Answer>>> = {
  async 'bad requests'(s) {
    await s.createTopic();
    return {
      'no group': await s.beat({ groupId: '' }),
      'blank group': await s.beat({ groupId: ' ' }),
      'empty instance': await s.beat({ instanceId: '' }),
      'empty rack': await s.beat({ rackId: '' }),
      'no member id, v1': await s.beat({ memberId: '' }),
      'epoch −3': await s.beat({ memberEpoch: -3 }),
      'no rebalance timeout': await s.beat({ rebalanceTimeoutMs: -1 }),
      'no owned partitions': await s.beat({ owned: null }),
      'owned partitions while joining': await s.beat({ owned: [0] }),
      'no subscription': await s.beat({ subscribedTopicNames: null }),
      'empty subscription': await s.beat({ subscribedTopicNames: [] }),
      'empty pattern': await s.beat({ subscribedTopicNames: null, subscribedTopicRegex: '' }),
      'bad pattern': await s.beat({ subscribedTopicNames: null, subscribedTopicRegex: '(x' }),
      'look-ahead': await s.beat({ subscribedTopicNames: null, subscribedTopicRegex: '(?=x)y' }),
      'unknown assignor': await s.beat({ serverAssignor: 'roundrobin' }),
      'unknown group': await s.idle({ memberEpoch: 3 }),
      'leave an unknown group': await s.idle({ memberEpoch: -1 }),
      '−2 without instance': await s.idle({ memberEpoch: -2 }),
      described: await s.describe(),
      listed: await s.listed(),
    };
  },
  async 'member id by the broker'(s) {
    await s.createTopic();
    return [await s.beat({ memberId: '' }, 0)];
  },
  async 'one member'(s) {
    await s.createTopic();
    return {
      joined: await s.beat({}),
      'joined again': await s.beat({}),
      idle: await s.idle(),
      acknowledged: await s.idle({ owned: [0, 1] }),
      'whole request': await s.beat({ memberEpoch: s.epoch(), owned: [0, 1] }),
      'older epoch, nothing owned': await s.idle({ memberEpoch: s.epoch() - 1 }),
      'epoch 0 again': await s.beat({}),
      'a greater epoch': await s.idle({ memberEpoch: 7 }),
      'a stranger': await s.idle({ memberId: 'x', memberEpoch: s.epoch() }),
      'a stranger leaves': await s.idle({ memberEpoch: -1, memberId: 'x' }),
      described: await s.describe(),
      'described v5': await s.describeClassic(5),
      'described v6': await s.describeClassic(6),
      listed: await s.listed(),
      'listed of type': await s.listed(['Consumer'], ['STABLE']),
      'listed of other type': await s.listed(['classic']),
      'deleted while in use': await s.deleteGroup(),
      'offsets deleted while subscribed': await s.deleteOffsets(),
      left: await s.idle({ memberEpoch: -1 }),
      'described empty': await s.describe(),
      'listed empty': await s.listed(),
      'offsets deleted': await s.deleteOffsets(),
      deleted: await s.deleteGroup(),
      'deleted again': await s.deleteGroup(),
      'described gone': await s.describe(),
      'described gone v5': await s.describeClassic(5),
      'described gone v6': await s.describeClassic(6),
      'offsets of none deleted': await s.deleteOffsets(),
    };
  },
  async 'two members'(s) {
    await s.createTopic(4);
    const out: Record<string, Answer> = {};
    out['a joins'] = await s.beat({ memberId: 'a' });
    out['b joins'] = await s.beat({ memberId: 'b' });
    out['described'] = await s.describe();
    out['a hears'] = await s.idle({ memberId: 'a' });
    out['a again'] = await s.idle({ memberId: 'a' });
    out['b waits'] = await s.idle({ memberId: 'b' });
    out['a acknowledges half'] = await s.idle({ memberId: 'a', owned: [0, 1, 2] });
    return out;
  },
  async revocation(s) {
    await s.createTopic(2);
    const out: Record<string, Answer> = {};
    out['a joins'] = await s.beat({ memberId: 'a' });
    out['b joins'] = await s.beat({ memberId: 'b' });
    const heard = (await s.idle({ memberId: 'a' })) as { assignment: { t: number[] } };
    const kept = heard.assignment.t;
    const given = [0, 1].filter((index) => !kept.includes(index));
    out['a hears'] = kept.length;
    const older = s.epoch('a');
    out['a keeps all'] = await s.idle({ memberId: 'a', owned: [0, 1] });
    out['b waits'] = await s.idle({ memberId: 'b' });
    out['a gave it up'] = shape(await s.idle({ memberId: 'a', owned: kept }));
    out['the older epoch with a subset'] = shape(
      await s.idle({ memberId: 'a', memberEpoch: older, owned: kept }),
    );
    out['the older epoch with more'] = await s.idle({
      memberId: 'a',
      memberEpoch: older,
      owned: [0, 1],
    });
    out['the older epoch without'] = await s.idle({ memberId: 'a', memberEpoch: older });
    const got = (await s.idle({ memberId: 'b' })) as { assignment: { t: number[] } };
    out['b gets it'] = got.assignment.t.join() === given.join();
    out['described'] = ((await s.describe()) as { state: string; epochs: number[] }).epochs;
    out['a leaves'] = await s.idle({ memberEpoch: -1, memberId: 'a' });
    out['described then'] = ((await s.describe()) as { state: string }).state;
    out['b has all'] = await s.idle({ memberId: 'b' });
    out['b changes its subscription'] = await s.idle({
      memberId: 'b',
      subscribedTopicNames: ['none-such'],
    });
    return out;
  },
  async 'static members'(s) {
    await s.createTopic();
    const out: Record<string, Answer> = {};
    out['joins'] = await s.beat({ memberId: 'a', instanceId: 'i' });
    out['another of the instance'] = await s.beat({ memberId: 'b', instanceId: 'i' });
    out['another says it is it'] = await s.idle({
      memberId: 'b',
      memberEpoch: s.epoch('a'),
      instanceId: 'i',
    });
    out['an unknown instance'] = await s.idle({ memberId: 'a', instanceId: 'j' });
    out['another leaves for it'] = await s.idle({
      memberEpoch: -2,
      memberId: 'b',
      instanceId: 'i',
    });
    out['leaves for a while'] = await s.idle({ memberEpoch: -2, memberId: 'a', instanceId: 'i' });
    out['described'] = await s.describe();
    out['speaks while away'] = await s.idle({ memberId: 'a', instanceId: 'i' });
    out['returns as another'] = await s.beat({ memberId: 'b', instanceId: 'i' });
    out['the former one'] = await s.idle({ memberId: 'a', instanceId: 'i' });
    out['the former one without instance'] = await s.idle({ memberId: 'a' });
    out['idle'] = await s.idle({ memberId: 'b', instanceId: 'i' });
    out['leaves for good'] = await s.idle({ memberEpoch: -1, memberId: 'b', instanceId: 'i' });
    out['listed'] = await s.listed();
    return out;
  },
  async patterns(s) {
    await s.createTopic();
    const out: Record<string, Answer> = {};
    const pattern = `${s.topic}.*`;
    const first = await s.beat({ subscribedTopicNames: null, subscribedTopicRegex: pattern });
    out['joins'] = (first as { errorCode: number }).errorCode;
    return out;
  },
  async 'topics change'(s) {
    await s.createTopic();
    const out: Record<string, Answer> = {};
    out['joins'] = await s.beat({});
    await s.addPartitions(3);
    out['more partitions'] = await s.idle();
    return out;
  },
  async 'a full group'(s) {
    await s.createTopic();
    const out: Answer[] = [];
    for (const memberId of ['a', 'b', 'c', 'd', 'e'])
      out.push(((await s.beat({ memberId })) as { errorCode: number }).errorCode);
    const join = await s.join({}, 3);
    out.push(join.errorCode);
    return out;
  },
  async commits(s) {
    await s.createTopic();
    const out: Record<string, Answer> = {};
    out['to no group v9'] = await s.commit('m', s.epoch());
    out['to no group v8'] = await s.commit('m', s.epoch(), 8);
    out['fetch of no group'] = await s.fetchOffsets(null, -1);
    out['fetch of no group by a member'] = await s.fetchOffsets('m', s.epoch());
    await s.beat({});
    out['of the epoch'] = await s.commit('m', s.epoch());
    out['of the epoch v10'] = await s.commit('m', s.epoch(), 10);
    out['of the epoch v8'] = await s.commit('m', s.epoch(), 8);
    out['older'] = await s.commit('m', s.epoch() - 1);
    out['newer'] = await s.commit('m', s.epoch() + 1);
    out['a stranger'] = await s.commit('x', s.epoch());
    out['from outside'] = await s.commit('', -1);
    out['fetch'] = await s.fetchOffsets('m', s.epoch());
    out['fetch v10'] = await s.fetchOffsets('m', s.epoch(), 10);
    out['fetch from outside'] = await s.fetchOffsets(null, -1);
    out['fetch of an older epoch'] = await s.fetchOffsets('m', s.epoch() - 1);
    out['fetch by a stranger'] = await s.fetchOffsets('x', s.epoch());
    await s.idle({ memberEpoch: -1 });
    out['from outside, empty'] = await s.commit('', -1);
    out['of a member, empty'] = await s.commit('m', s.epoch());
    out['fetch of a member, empty'] = await s.fetchOffsets('m', s.epoch());
    return out;
  },
  async 'classic into a consumer group'(s) {
    await s.createTopic();
    const out: Record<string, Answer> = {};
    out['a joins'] = await s.beat({ memberId: 'a' });
    const other = await s.join({ protocolType: 'connect' });
    out['of another type'] = other.errorCode;
    const asked = await s.join();
    out['an id first'] = [asked.errorCode, asked.memberId !== ''];
    const { memberId } = asked;
    const joined = await s.join({ memberId });
    out['joins'] = [
      joined.errorCode,
      joined.generationId,
      joined.protocolName,
      joined.leader,
      joined.members.length,
    ];
    out['commit before its sync'] = await s.commit(memberId, joined.generationId, 8);
    out['syncs'] = await s.sync({ memberId, generationId: joined.generationId });
    out['syncs of another generation'] = await s.sync({ memberId, generationId: 9 });
    out['syncs with another protocol'] = await s.sync({
      memberId,
      generationId: joined.generationId,
      protocolName: 'sticky',
    });
    out['beats'] = await s.classicBeat(memberId, joined.generationId);
    out['beats of another generation'] = await s.classicBeat(memberId, 9);
    out['a stranger beats'] = await s.classicBeat('x', 1);
    out['the other beats as classic'] = await s.classicBeat('a', 1);
    const hears = (await s.idle({ memberId: 'a' })) as { assignment: { t: number[] } };
    out['a gives up'] = shape(await s.idle({ memberId: 'a', owned: hears.assignment.t }));
    out['beats then'] = await s.classicBeat(memberId, joined.generationId);
    const again = await s.join({ memberId });
    out['joins again'] = [again.errorCode, again.generationId];
    out['syncs then'] = shapeOf(await s.sync({ memberId, generationId: again.generationId }));
    out['described'] = ((await s.describe()) as { members: { member: unknown[] }[] }).members.map(
      ({ member }) => member[4],
    );
    out['commits'] = await s.commit(memberId, again.generationId, 8);
    out['commits of another generation'] = await s.commit(memberId, 9, 8);
    out['a stranger leaves'] = await s.leaveClassic('x');
    out['a leaves'] = await s.idle({ memberEpoch: -1, memberId: 'a' });
    out['listed after the downgrade'] = await s.listed();
    out['beats after the downgrade'] = await s.classicBeat(memberId, again.generationId);
    return out;
  },
  async upgrade(s) {
    await s.createTopic(2);
    const out: Record<string, Answer> = {};
    const { memberId } = await s.join();
    const joined = await s.join({ memberId });
    const assignment = encodeAssignment({
      assignedPartitions: [{ topic: s.topic, partitions: [0, 1] }],
    });
    out['syncs'] = await s.sync({
      memberId,
      generationId: joined.generationId,
      assignments: [{ memberId, assignment }],
    });
    out['described'] = await s.describe();
    out['a consumer joins'] = await s.beat({ memberId: 'b' });
    out['listed'] = await s.listed();
    out['epochs'] = ((await s.describe()) as { epochs: number[] }).epochs;
    out['beats'] = await s.classicBeat(memberId, joined.generationId);
    const again = await s.join({ memberId });
    out['joins again'] = [again.errorCode, again.generationId];
    out['syncs then'] = shapeOf(await s.sync({ memberId, generationId: again.generationId }));
    out['the consumer gets the rest'] = shape(await s.idle({ memberId: 'b' }));
    return out;
  },
  async 'an operator removes a consumer'(s) {
    await s.createTopic(2);
    await s.beat({ memberId: 'a' });
    await s.beat({ memberId: 'b' });
    return [await s.leaveClassic('a'), await s.idle({ memberId: 'a' }), await s.listed()];
  },
  async 'commits of an epoch that is past'(s) {
    await s.createTopic(2);
    const out: Record<string, Answer> = {};
    await s.beat({ memberId: 'a' });
    const older = s.epoch('a');
    await s.beat({ memberId: 'b' });
    const { assignment } = (await s.idle({ memberId: 'a' })) as { assignment: { t: number[] } };
    out['a gives up'] = shape(await s.idle({ memberId: 'a', owned: assignment.t }));
    await s.idle({ memberId: 'b' });
    out['of what it keeps'] = await s.commit('a', older, 9, assignment.t[0]);
    out['of what it gave up'] = await s.commit('a', older, 9, 1 - assignment.t[0]!);
    out['of what it gave up, in its epoch'] = await s.commit(
      'a',
      s.epoch('a'),
      9,
      1 - assignment.t[0]!,
    );
    return out;
  },
  async 'a static member goes back to classic'(s) {
    await s.createTopic(2);
    const out: Record<string, Answer> = {};
    await s.beat({ memberId: 'a', instanceId: 'i' });
    await s.idle({ memberId: 'a', memberEpoch: -2, instanceId: 'i' });
    const joined = await s.join({ groupInstanceId: 'i' });
    out['joins'] = [
      joined.errorCode,
      joined.generationId,
      joined.protocolName,
      joined.leader,
      joined.members.length,
    ];
    out['listed'] = await s.listed();
    return out;
  },
  async 'upgrade of another type'(s) {
    await s.createTopic();
    const asked = await s.join({ protocolType: 'connect' });
    const joined = await s.join({ memberId: asked.memberId, protocolType: 'connect' });
    return [joined.errorCode, await s.beat({ memberId: 'b' })];
  },
  async 'of an empty classic group'(s) {
    await s.createTopic();
    const out: Record<string, Answer> = {};
    out['commits from outside'] = await s.commit('', -1);
    out['listed'] = await s.listed();
    out['described'] = await s.describe();
    out['joins'] = await s.beat({});
    out['listed then'] = await s.listed();
    out['fetch'] = await s.fetchOffsets('m', s.epoch());
    out['leaves'] = await s.idle({ memberEpoch: -1 });
    const asked = await s.join();
    const joined = await s.join({ memberId: asked.memberId });
    out['classic joins'] = [asked.errorCode, joined.errorCode, joined.generationId];
    out['listed at last'] = await s.listed();
    return out;
  },
  async coordinators(s) {
    const reply = await s.call(findCoordinatorApi, 4, {
      key: '',
      keyType: 0,
      coordinatorKeys: [s.group, ''],
    } as never);
    return reply.coordinators.map(({ errorCode }) => errorCode);
  },
};

/** Which partitions is chance, how many is not. */
function shape(answer: Answer): Answer {
  const reply = answer as { assignment?: Record<string, number[]> | null };
  if (reply.assignment === null || reply.assignment === undefined) return answer;
  const counts = Object.entries(reply.assignment).map(([name, list]) => [name, list.length]);
  return { ...reply, assignment: Object.fromEntries(counts) };
}

const shapeOf = ({ errorCode, owned }: { errorCode: number; owned?: number[][] }) => [
  errorCode,
  owned?.map((list) => list.length),
];

/** Runs every scene against the broker at `port` of this machine. */
export async function answersOf(port: number, run: Run): Promise<Record<string, Answer>> {
  const answers: Record<string, Answer> = {};
  await ready(port, run);
  for (const [name, play] of Object.entries(SCENES)) {
    const client = await RawClient.connect(port);
    try {
      answers[name] = await play(new Scene(client, name.replaceAll(/[^a-z]/g, ''), run));
    } catch (caught) {
      answers[name] = `failed: ${String(caught)}`;
    } finally {
      client.close();
    }
  }
  return answers;
}

/** Waits until the broker coordinates groups: a new one of Apache Kafka takes some seconds. */
async function ready(port: number, run: Run): Promise<void> {
  const client = await RawClient.connect(port);
  const scene = new Scene(client, 'ready', run);
  const request = { key: '', keyType: 0, coordinatorKeys: [scene.group] };
  for (let tries = 0; tries < 100; tries += 1) {
    await scene.call(findCoordinatorApi, 4, request as never);
    if (((await scene.idle()) as { errorCode: number }).errorCode === 69) break;
    await systemClock.sleep(200);
  }
  client.close();
}

/** What Apache Kafka 4.3.1 answered, with `group.consumer.max.size=4`. */
export function kafkaAnswers(): Record<string, Answer> {
  const file = new URL('kafka-answers.json', import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, Answer>;
}

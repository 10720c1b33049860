// floe groups list | describe | delete
import { Command } from 'commander';
import { FloeError } from '../../base/error.ts';
import {
  deleteGroupsApi,
  describeGroupsApi,
  listGroupsApi,
  listOffsetsApi,
  offsetFetchApi,
} from '../../protocol/index.ts';
import { KAFKA_SERVER } from '../kafka-client.ts';
import { throwKafkaError } from '../kafka-error.ts';
import { textTable } from '../text-table.ts';
import { type WireClient, withWire } from '../wire-client.ts';

interface ServerOption {
  readonly server: string;
}

export function groupsCommand(): Command {
  const command = new Command('groups').description('list, describe and delete consumer groups');
  const server = ['--server <host:port>', 'the Kafka address', KAFKA_SERVER] as const;
  command
    .command('list')
    .description('all groups')
    .option(...server)
    .action(listGroups);
  command
    .command('describe <group>')
    .description('members, committed offsets and lag')
    .option(...server)
    .action(describeGroup);
  command
    .command('delete <group>')
    .description('delete an empty group')
    .option(...server)
    .action(deleteGroup);
  return command;
}

async function listGroups({ server }: ServerOption): Promise<void> {
  const { groups } = await withWire(server, (client) => client.ask(listGroupsApi, {}));
  const rows = groups.map((group) => [group.groupId, group.groupState, group.protocolType]);
  process.stdout.write(textTable(['group', 'state', 'protocol'], rows));
}

async function describeGroup(groupId: string, { server }: ServerOption): Promise<void> {
  await withWire(server, async (client) => {
    const { groups } = await client.ask(describeGroupsApi, { groups: [groupId] });
    const group = groups[0]!;
    throwKafkaError(`group "${groupId}"`, group.errorCode, group.errorMessage);
    if (group.groupState === 'Dead')
      throw new FloeError('not-found', `there is no group "${groupId}"`);
    process.stdout.write(
      `group ${groupId}: ${group.groupState}, ${group.members.length} members\n\n`,
    );
    const members = group.members.map((member) => [
      member.memberId,
      member.clientId,
      member.clientHost,
    ]);
    if (members.length > 0)
      process.stdout.write(`${textTable(['member', 'client', 'host'], members)}\n`);
    const lag = await lagOf(client, groupId);
    process.stdout.write(textTable(['topic', 'partition', 'committed', 'end', 'lag'], lag));
  });
}

const LATEST = -1;
/** The newest version that names topics instead of giving their ids. */
const OFFSET_FETCH_BY_NAME = 9;

async function lagOf(client: WireClient, groupId: string): Promise<unknown[][]> {
  const request = { groups: [{ groupId, topics: null }] };
  const { groups } = await client.ask(offsetFetchApi, request, OFFSET_FETCH_BY_NAME);
  const rows: unknown[][] = [];
  for (const { name, partitions } of groups[0]?.topics ?? []) {
    const asked = partitions.map(({ partitionIndex }) => ({ partitionIndex, timestamp: LATEST }));
    const { topics } = await client.ask(listOffsetsApi, {
      replicaId: -1,
      topics: [{ name, partitions: asked }],
    });
    for (const { partitionIndex, committedOffset } of partitions) {
      const end = topics[0]?.partitions.find(
        (partition) => partition.partitionIndex === partitionIndex,
      )?.offset;
      const lag = end === undefined || end < 0 ? null : end - committedOffset;
      rows.push([name, partitionIndex, committedOffset, end ?? null, lag]);
    }
  }
  return rows;
}

async function deleteGroup(groupId: string, { server }: ServerOption): Promise<void> {
  await withWire(server, async (client) => {
    const { results } = await client.ask(deleteGroupsApi, { groupsNames: [groupId] });
    throwKafkaError(`group "${groupId}"`, results[0]!.errorCode);
  });
  process.stdout.write(`deleted group ${groupId}\n`);
}

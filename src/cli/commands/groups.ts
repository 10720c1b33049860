// floe groups list | describe | delete
import { Command } from 'commander';
import { FloeError } from '../../base/error.ts';
import { KAFKA_SERVER, withAdmin } from '../kafka-client.ts';
import { textTable } from '../text-table.ts';

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
  const rows = await withAdmin(server, async (admin) => {
    const { groups } = await admin.listGroups();
    if (groups.length === 0) return [];
    const described = await admin.describeGroups(groups.map((group) => group.groupId));
    return described.groups.map((group) => [group.groupId, group.state, group.members.length]);
  });
  process.stdout.write(textTable(['group', 'state', 'members'], rows));
}

async function describeGroup(groupId: string, { server }: ServerOption): Promise<void> {
  const { group, offsets } = await withAdmin(server, async (admin) => {
    const [group] = (await admin.describeGroups([groupId])).groups;
    const committed = await admin.fetchOffsets({ groupId });
    const offsets: unknown[][] = [];
    for (const { topic, partitions } of committed) {
      const ends = new Map(
        (await admin.fetchTopicOffsets(topic)).map((end) => [end.partition, Number(end.high)]),
      );
      for (const { partition, offset } of partitions) {
        const end = ends.get(partition) ?? null;
        offsets.push([
          topic,
          partition,
          Number(offset),
          end,
          end === null ? null : end - Number(offset),
        ]);
      }
    }
    return { group, offsets };
  });
  if (group === undefined || group.state === 'Dead')
    throw new FloeError('not-found', `there is no group "${groupId}"`);
  process.stdout.write(`group ${groupId}: ${group.state}, ${group.members.length} members\n\n`);
  const members = group.members.map((member) => [
    member.memberId,
    member.clientId,
    member.clientHost,
  ]);
  if (members.length > 0)
    process.stdout.write(`${textTable(['member', 'client', 'host'], members)}\n`);
  process.stdout.write(textTable(['topic', 'partition', 'committed', 'end', 'lag'], offsets));
}

async function deleteGroup(groupId: string, { server }: ServerOption): Promise<void> {
  await withAdmin(server, (admin) => admin.deleteGroups([groupId]));
  process.stdout.write(`deleted group ${groupId}\n`);
}

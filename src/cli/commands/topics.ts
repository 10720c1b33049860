// floe topics create | list | describe | delete
import { Command } from 'commander';
import { ConfigResourceTypes, type ITopicConfig } from 'kafkajs';
import { FloeError } from '../../base/error.ts';
import { KAFKA_SERVER, withAdmin } from '../kafka-client.ts';
import { textTable } from '../text-table.ts';

interface ServerOption {
  readonly server: string;
}

const server = ['--server <host:port>', 'the Kafka address', KAFKA_SERVER] as const;

export function topicsCommand(): Command {
  const command = new Command('topics').description('create, list, describe and delete topics');
  command
    .command('create <name>')
    .description('create a topic')
    .option('--partitions <n>', "number of partitions (default: the server's num.partitions)")
    .option('--config <key=value>', 'a topic config; may be repeated', collectConfig, {})
    .option(...server)
    .addHelpText('after', CREATE_EXAMPLE)
    .action(createTopic);
  command
    .command('list')
    .description('all topics')
    .option(...server)
    .action(listTopics);
  command
    .command('describe <name>')
    .description('partitions, offsets and configs that were set')
    .option(...server)
    .action(describeTopic);
  command
    .command('delete <name>')
    .description('delete a topic and its data')
    .option(...server)
    .action(deleteTopic);
  return command;
}

const CREATE_EXAMPLE = `
Example: a topic whose records become rows of an Iceberg table, partitioned by day
  floe topics create flights --partitions 4 --config table.topic.enable=true \\
    --config table.topic.convert.value.type=by_schema_id --config 'table.topic.partition.by=[day(date)]'`;

function collectConfig(text: string, collected: Record<string, string>): Record<string, string> {
  const at = text.indexOf('=');
  if (at < 1) throw new FloeError('invalid', `--config: "${text}" is not key=value`);
  return { ...collected, [text.slice(0, at)]: text.slice(at + 1) };
}

async function createTopic(
  name: string,
  options: ServerOption & { partitions?: string; config: Record<string, string> },
): Promise<void> {
  const numPartitions = options.partitions === undefined ? -1 : Number(options.partitions);
  if (!Number.isInteger(numPartitions) || numPartitions === 0) {
    throw new FloeError(
      'invalid',
      `--partitions: "${options.partitions}" is not a whole number above 0`,
    );
  }
  const topic: ITopicConfig = {
    topic: name,
    numPartitions,
    configEntries: Object.entries(options.config).map(([key, value]) => ({ name: key, value })),
  };
  const created = await withAdmin(options.server, async (admin) => {
    return await admin.createTopics({ topics: [topic], waitForLeaders: false });
  });
  if (!created) throw new FloeError('conflict', `topic "${name}" already exists`);
  process.stdout.write(`created topic ${name}\n`);
}

async function listTopics(options: ServerOption): Promise<void> {
  const { topics } = await withAdmin(options.server, async (admin) => {
    return await admin.fetchTopicMetadata();
  });
  const rows = topics.map(({ name, partitions }) => [name, partitions.length]);
  process.stdout.write(textTable(['topic', 'partitions'], rows.sort()));
}

async function describeTopic(name: string, options: ServerOption): Promise<void> {
  const found = await withAdmin(options.server, async (admin) => {
    const offsets = await admin.fetchTopicOffsets(name);
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name }],
    });
    return { offsets, configs: resources[0]?.configEntries ?? [] };
  });
  const rows = found.offsets
    .map(({ partition, low, high }) => [
      partition,
      Number(low),
      Number(high),
      Number(high) - Number(low),
    ])
    .sort((a, b) => a[0]! - b[0]!);
  process.stdout.write(textTable(['partition', 'start', 'end', 'records'], rows));
  const set = found.configs.filter((entry) => !entry.isDefault);
  if (set.length > 0) {
    process.stdout.write(
      `\n${textTable(
        ['config', 'value'],
        set.map((entry) => [entry.configName, entry.configValue]),
      )}`,
    );
  }
}

async function deleteTopic(name: string, options: ServerOption): Promise<void> {
  await withAdmin(options.server, async (admin) => {
    await admin.deleteTopics({ topics: [name] });
  });
  process.stdout.write(`deleted topic ${name}\n`);
}

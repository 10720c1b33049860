// floe topics create | list | describe | delete
import { Command } from 'commander';
import { FloeError } from '../../base/error.ts';
import {
  createTopicsApi,
  deleteTopicsApi,
  describeConfigsApi,
  listOffsetsApi,
  metadataApi,
  ZERO_UUID,
} from '../../protocol/index.ts';
import { KAFKA_SERVER } from '../kafka-client.ts';
import { throwKafkaError } from '../kafka-error.ts';
import { textTable } from '../text-table.ts';
import { type WireClient, withWire } from '../wire-client.ts';

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
  const configs = Object.entries(options.config).map(([key, value]) => ({ name: key, value }));
  const topic = { name, numPartitions, replicationFactor: -1, assignments: [], configs };
  await withWire(options.server, async (client) => {
    const { topics } = await client.ask(createTopicsApi, { topics: [topic] });
    throwKafkaError(`topic "${name}"`, topics[0]!.errorCode, topics[0]!.errorMessage);
    process.stdout.write(`created topic ${name} with ${topics[0]!.numPartitions} partitions\n`);
  });
}

async function listTopics(options: ServerOption): Promise<void> {
  const { topics } = await withWire(options.server, (client) =>
    client.ask(metadataApi, { topics: null }),
  );
  const rows = topics.map(({ name, partitions }) => [name ?? '', partitions.length] as const);
  process.stdout.write(
    textTable(
      ['topic', 'partitions'],
      rows.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    ),
  );
}

const EARLIEST = -2;
const LATEST = -1;

async function describeTopic(name: string, options: ServerOption): Promise<void> {
  await withWire(options.server, async (client) => {
    const { topics } = await client.ask(metadataApi, {
      topics: [{ name, topicId: ZERO_UUID }],
      allowAutoTopicCreation: false,
    });
    throwKafkaError(`topic "${name}"`, topics[0]!.errorCode);
    const partitions = topics[0]!.partitions
      .map((partition) => partition.partitionIndex)
      .sort((a, b) => a - b);
    const starts = await offsets(client, name, partitions, EARLIEST);
    const ends = await offsets(client, name, partitions, LATEST);
    const rows = partitions.map((p) => [
      p,
      starts.get(p)!,
      ends.get(p)!,
      ends.get(p)! - starts.get(p)!,
    ]);
    process.stdout.write(textTable(['partition', 'start', 'end', 'records'], rows));
    const set = await configsThatWereSet(client, name);
    if (set.length > 0) process.stdout.write(`\n${textTable(['config', 'value'], set)}`);
  });
}

async function offsets(
  client: WireClient,
  name: string,
  partitions: readonly number[],
  timestamp: number,
) {
  const asked = partitions.map((partitionIndex) => ({
    partitionIndex,
    currentLeaderEpoch: -1,
    timestamp,
  }));
  const { topics } = await client.ask(listOffsetsApi, {
    replicaId: -1,
    topics: [{ name, partitions: asked }],
  });
  return new Map(
    topics[0]!.partitions.map((partition) => [partition.partitionIndex, partition.offset]),
  );
}

const TOPIC_RESOURCE = 2;
/** ConfigSource DYNAMIC_TOPIC_CONFIG. */
const SET_ON_TOPIC = 1;

async function configsThatWereSet(client: WireClient, name: string) {
  const { results } = await client.ask(describeConfigsApi, {
    resources: [{ resourceType: TOPIC_RESOURCE, resourceName: name, configurationKeys: null }],
  });
  throwKafkaError(`configs of "${name}"`, results[0]!.errorCode, results[0]!.errorMessage);
  return results[0]!.configs
    .filter((config) => config.configSource === SET_ON_TOPIC)
    .map((config) => [config.name, config.value]);
}

async function deleteTopic(name: string, options: ServerOption): Promise<void> {
  await withWire(options.server, async (client) => {
    const { responses } = await client.ask(deleteTopicsApi, {
      topics: [{ name, topicId: ZERO_UUID }],
      timeoutMs: 30_000,
    });
    throwKafkaError(`topic "${name}"`, responses[0]!.errorCode, responses[0]!.errorMessage);
  });
  process.stdout.write(`deleted topic ${name}\n`);
}

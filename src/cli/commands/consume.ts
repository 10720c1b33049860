// floe consume: records of a topic on standard output.
import { Command } from 'commander';
import type { EachMessagePayload, Kafka } from 'kafkajs';
import { systemIds } from '../../base/prng.ts';
import { KAFKA_SERVER, withAdmin, withKafka } from '../kafka-client.ts';

interface ConsumeOptions {
  readonly server: string;
  readonly fromBeginning: boolean;
  readonly untilEnd: boolean;
  readonly max?: string;
  readonly group?: string;
  readonly format: string;
}

export function consumeCommand(): Command {
  return new Command('consume')
    .description('print records; ends at --max, at --until-end or when interrupted')
    .argument('<topic>')
    .option('--from-beginning', 'start at the oldest record instead of the newest', false)
    .option('--until-end', 'stop at the end that each partition has now', false)
    .option('--max <n>', 'stop after n records')
    .option('--group <name>', 'consume as this group and commit (default: no group is kept)')
    .option('--format <text|json>', 'the value as it is, or one JSON object a record', 'text')
    .option('--server <host:port>', 'the Kafka address', KAFKA_SERVER)
    .action(consume);
}

async function consume(topic: string, options: ConsumeOptions): Promise<void> {
  const remaining = options.untilEnd ? await endsOf(topic, options.server) : undefined;
  if (remaining?.size === 0) return;
  await withKafka(options.server, (kafka) => run({ kafka, topic, options, remaining }));
}

/** The last offset to print per partition that has records. */
async function endsOf(topic: string, server: string): Promise<Map<number, number>> {
  const offsets = await withAdmin(server, (admin) => admin.fetchTopicOffsets(topic));
  return new Map(
    offsets
      .filter(({ low, high }) => Number(high) > Number(low))
      .map(({ partition, high }) => [partition, Number(high) - 1]),
  );
}

interface Run {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly options: ConsumeOptions;
  readonly remaining: Map<number, number> | undefined;
}

async function run({ kafka, topic, options, remaining }: Run): Promise<void> {
  const consumer = kafka.consumer({ groupId: options.group ?? `floe-cli-${systemIds.uuid()}` });
  let left = options.max === undefined ? Infinity : Number(options.max);
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  process.once('SIGINT', finish);
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: options.fromBeginning || options.untilEnd });
  await consumer.run({
    autoCommit: options.group !== undefined,
    eachMessage: async ({ partition, message }) => {
      if (left <= 0) return;
      left -= 1;
      print(options.format, { partition, message });
      if (remaining !== undefined && Number(message.offset) >= (remaining.get(partition) ?? 0))
        remaining.delete(partition);
      if (left <= 0 || remaining?.size === 0) finish();
    },
  });
  await finished;
  await consumer.disconnect();
}

function print(
  format: string,
  { partition, message }: Pick<EachMessagePayload, 'partition' | 'message'>,
): void {
  const value = message.value?.toString() ?? null;
  if (format !== 'json') {
    process.stdout.write(`${value ?? ''}\n`);
    return;
  }
  const { key, offset, timestamp } = message;
  const record = {
    partition,
    offset: Number(offset),
    timestamp: Number(timestamp),
    key: key?.toString() ?? null,
    value,
  };
  process.stdout.write(`${JSON.stringify(record)}\n`);
}

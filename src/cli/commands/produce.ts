// floe produce: lines of a file or of standard input become records.
import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import type { Message, Producer } from 'kafkajs';
import { FloeError } from '../../base/error.ts';
import { avroEncoder, registerAvro } from '../avro-value.ts';
import { KAFKA_SERVER, withKafka } from '../kafka-client.ts';
import { readLines } from '../lines.ts';

interface ProduceOptions {
  readonly server: string;
  readonly registry: string;
  readonly file: string;
  readonly keySeparator?: string;
  readonly valueSchema?: string;
}

/** Records a request; the client splits them over partitions. */
const BATCH = 2_000;

export function produceCommand(): Command {
  return new Command('produce')
    .description('send lines as records; each is acknowledged when it is durable')
    .argument('<topic>')
    .option('--file <path>', 'where the lines are, - for standard input', '-')
    .option('--key-separator <text>', 'what is before it in a line becomes the key')
    .option(
      '--value-schema <file>',
      'Avro schema: registers it as <topic>-value and encodes each JSON line with it',
    )
    .option('--registry <host:port>', 'the schema registry', '127.0.0.1:8081')
    .option('--server <host:port>', 'the Kafka address', KAFKA_SERVER)
    .action(produce);
}

async function produce(topic: string, options: ProduceOptions): Promise<void> {
  const toMessage = await messageMaker(topic, options);
  const sent = await withKafka(options.server, async (kafka) => {
    const producer = kafka.producer();
    await producer.connect();
    try {
      return await sendAll({ producer, topic, lines: readLines(options.file), toMessage });
    } finally {
      await producer.disconnect();
    }
  });
  process.stderr.write(`${sent} records sent to ${topic}\n`);
}

async function messageMaker(
  topic: string,
  options: ProduceOptions,
): Promise<(line: Buffer) => Message> {
  const { keySeparator, valueSchema, registry } = options;
  let value = (line: Buffer): Buffer => line;
  if (valueSchema !== undefined) {
    const schema = await readFile(valueSchema, 'utf8').catch((caught: unknown) => {
      throw FloeError.from(caught, '--value-schema');
    });
    const encoder = avroEncoder(schema, await registerAvro(registry, `${topic}-value`, schema));
    value = (line) => encoder.encode(JSON.parse(line.toString()));
  }
  if (keySeparator === undefined) return (line) => ({ value: value(line) });
  return (line) => {
    const at = line.indexOf(keySeparator);
    if (at < 0)
      throw new FloeError(
        'invalid',
        `no key separator "${keySeparator}" in line: ${line.toString().slice(0, 80)}`,
      );
    return {
      key: line.subarray(0, at),
      value: value(line.subarray(at + Buffer.byteLength(keySeparator))),
    };
  };
}

interface Sending {
  readonly producer: Producer;
  readonly topic: string;
  readonly lines: AsyncIterable<Buffer>;
  readonly toMessage: (line: Buffer) => Message;
}

async function sendAll({ producer, topic, lines, toMessage }: Sending): Promise<number> {
  let sent = 0;
  let messages: Message[] = [];
  const flush = async () => {
    if (messages.length > 0) await producer.send({ topic, messages, acks: -1 });
    sent += messages.length;
    messages = [];
  };
  for await (const line of lines) {
    messages.push(toMessage(line));
    if (messages.length >= BATCH) await flush();
  }
  await flush();
  return sent;
}

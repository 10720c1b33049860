// One client process of the consistency workload: ROLE NAME BROKER HISTORY. An unmodified Kafka client does what
// applications do, through whatever happens to the server, and writes down what it saw. Ends with SIGTERM.
// A producer that met an error begins anew: its client doesn't know which sequence numbers were used.
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs, { type Consumer, type Kafka, type Producer, type Transaction } from 'kafkajs';
import { type Entry, recorder } from './history.ts';
import { poll, withAnyWire } from './reader.ts';
import { GROUP_PREFIX, PARTITIONS, TOPIC } from './topic.ts';

const [role, name, broker, file] = process.argv.slice(2) as [string, string, string, string];
const write = recorder(file);
const kafka: Kafka = new kafkajs.Kafka({
  clientId: name,
  brokers: broker.split(','),
  logLevel: kafkajs.logLevel.NOTHING,
  connectionTimeout: 2_000,
  requestTimeout: 10_000,
  retry: { initialRetryTime: 50, maxRetryTime: 1_000, retries: 8 },
});

let stopping = false;
let next = 0;
/** Unique over restarts of this name. */
const life = `${name}-${process.pid}`;

const one = (limit: number) => Math.floor(Math.random() * limit);

function batch() {
  const values = Array.from({ length: 1 + one(5) }, () => `${life}-${next++}`);
  return { partition: one(PARTITIONS), values };
}

function failed(doing: string, caught: unknown): void {
  const { type = 'CLIENT', message = '' } = caught as { type?: string; message?: string };
  write({ op: 'error', doing, type, message });
}

async function send(by: Pick<Producer, 'send'>, txn?: string): Promise<void> {
  const { partition, values } = batch();
  write({ op: 'send', partition, values, ...(txn === undefined ? {} : { txn }) });
  const messages = values.map((value) => ({ partition, value: JSON.stringify({ value }) }));
  const [answer] = await by.send({ topic: TOPIC, acks: -1, messages });
  write({ op: 'acked', partition, values, offset: Number(answer?.baseOffset ?? -1) });
}

/** Runs `work` on one producer after another, until told to stop. */
async function produce(make: () => Producer, work: (producer: Producer) => Promise<void>) {
  while (!stopping) {
    const producer = make();
    try {
      await producer.connect();
      while (!stopping) {
        await work(producer);
        await sleep(one(30));
      }
    } catch (caught) {
      failed('produced', caught);
      await sleep(100 + one(400));
    }
    await producer.disconnect().catch((caught) => failed('disconnected', caught));
  }
}

async function transact(producer: Producer): Promise<void> {
  const transaction: Transaction = await producer.transaction();
  const txn = `${life}-t${next++}`;
  try {
    for (let n = one(4); n >= 0; n -= 1) await send(transaction, txn);
  } catch (caught) {
    // Whatever was written: nobody asked to commit it.
    write({ op: 'aborted', txn });
    await transaction.abort().catch((error) => failed('aborted', error));
    throw caught;
  }
  if (Math.random() < 0.3) {
    write({ op: 'aborted', txn });
    await transaction.abort();
    return;
  }
  write({ op: 'committing', txn });
  await transaction.commit();
  write({ op: 'committed', txn });
}

/** A member of a group, of everything that is written: reader.ts says why not of what is committed. */
async function consume(): Promise<void> {
  while (!stopping) {
    const consumer: Consumer = kafka.consumer({
      groupId: `${GROUP_PREFIX}${name}`,
      sessionTimeout: 10_000,
      heartbeatInterval: 1_000,
      maxWaitTimeInMs: 300,
      readUncommitted: true,
    });
    // The client starts over by itself after most errors, and says so; after the others it needs a new consumer.
    let over = false;
    consumer.on(consumer.events.GROUP_JOIN, () => write({ op: 'joined' }));
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      failed('consumed', payload.error);
      over = !payload.restart;
    });
    try {
      await consumer.connect();
      await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
      await consumer.run({
        autoCommitInterval: 500,
        eachBatch: async ({ batch: { partition, messages } }) => {
          const records = messages.map(
            ({ offset, value }) => [Number(offset), textOf(value)] as const,
          );
          write({ op: 'polled', partition, records } satisfies Entry);
        },
      });
      while (!stopping && !over) await sleep(100);
    } catch (caught) {
      failed('consumed', caught);
      await sleep(200);
    }
    await consumer.disconnect().catch((caught) => failed('disconnected', caught));
  }
}

/** Everything that is committed, from the start, where it is over every failure. */
async function read(): Promise<void> {
  const positions = new Array<number>(PARTITIONS).fill(0);
  write({ op: 'began' });
  while (!stopping) {
    try {
      await withAnyWire(broker, async (wire) => {
        while (!stopping)
          for (const [partition, offset] of positions.entries()) {
            const { records, next } = await poll(wire, { partition, offset, committedOnly: true });
            if (records.length > 0) write({ op: 'polled', partition, records });
            positions[partition] = next;
          }
      });
    } catch (caught) {
      failed('read', caught);
      await sleep(100);
    }
  }
}

const textOf = (bytes: Buffer | null) => (JSON.parse(bytes!.toString()) as { value: string }).value;

process.on('SIGTERM', () => {
  stopping = true;
});

const idempotent = {
  idempotent: true,
  maxInFlightRequests: 1,
  allowAutoTopicCreation: false,
} as const;
switch (role) {
  case 'producer':
    await produce(
      () => kafka.producer(idempotent),
      (producer) => send(producer),
    );
    break;
  case 'transactional': {
    // Two of these may share an id, and fence one another.
    const transactionalId = name.replace(/-.*$/, '');
    const transactionTimeout = 20_000;
    await produce(
      () => kafka.producer({ ...idempotent, transactionalId, transactionTimeout }),
      transact,
    );
    break;
  }
  case 'consumer':
    await consume();
    break;
  case 'reader':
    await read();
    break;
  default:
    throw new Error(`no role "${role}"`);
}
process.exit(0);

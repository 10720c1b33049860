// Consume, transform, produce with kafkajs: a group member whose offsets are part of its producer's transactions, while
// brokers are killed. After any error the job does what such a job has to: a new producer with the same id, which ends
// what was open, and the group's offsets from the coordinator. Each record must be in the output once, in order.
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { readPartition } from '../oracles/read-log.ts';
import { errorTexts } from './error-texts.ts';
import type { KilledWork } from './kafkajs-acks.ts';
import { type Exchange, tappedSockets } from './wire-tap.ts';

const PARTITIONS = 4;
const EACH = 400;
/** Records of a transaction at most. */
const TAKEN = 25;
/** No job may take longer, however many brokers die. */
const JOB_LIMIT_MS = 180_000;

/** How often each API was answered with each error code. */
class Codes {
  readonly #counts = new Map<string, number>();

  hear({ api, response }: Exchange): void {
    for (const code of errorCodes(response)) {
      const key = `${api.name} ${code}`;
      this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    }
  }

  get text(): string {
    return [...this.#counts].map(([key, count]) => `${key}: ${count}`).join(', ');
  }
}

/** All error codes but 0 in a response, at any depth. */
function* errorCodes(value: unknown): Iterable<number> {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return;
  for (const [name, inner] of Object.entries(value)) {
    if (name === 'errorCode' && inner !== 0) yield inner as number;
    else yield* errorCodes(inner);
  }
}

interface Job {
  readonly kafka: kafkajs.Kafka;
  readonly input: string;
  readonly output: string;
  readonly id: string;
  /** What went wrong in which call. */
  readonly troubles: Map<string, number>;
}

/** @returns what is the brokers' fault. */
export async function copiesUnderKills({ brokers, kills }: KilledWork): Promise<readonly string[]> {
  const codes = new Codes();
  const kafka = new kafkajs.Kafka({
    clientId: 'copies',
    brokers: [...brokers],
    logLevel: kafkajs.logLevel.NOTHING,
    socketFactory: tappedSockets((exchange) => codes.hear(exchange)),
  });
  const faults: string[] = [];
  const troubles = new Map<string, number>();
  let over = false;
  let jobs = 0;
  const work = (async () => {
    while (!over) {
      jobs += 1;
      const names = { input: `in-${jobs}`, output: `out-${jobs}`, id: `copy-${jobs}` };
      faults.push(...(await runJob({ kafka, troubles, ...names }, brokers)));
    }
  })();
  await kills(() => {});
  over = true;
  await work;
  process.stdout.write(
    [
      `${jobs} jobs of ${PARTITIONS * EACH} records`,
      `error codes on the wire: ${codes.text}`,
      ...[...troubles].map(([what, count]) => `  ${count} × ${what}`),
      '',
    ].join('\n'),
  );
  return faults;
}

async function runJob(job: Job, brokers: readonly string[]): Promise<readonly string[]> {
  const begun = performance.now();
  await insisting(job, 'prepare', () => prepare(job));
  let attempts = 0;
  for (let done = false; !done; ) {
    if (performance.now() - begun > JOB_LIMIT_MS)
      return [`${job.id}: not done after ${JOB_LIMIT_MS} ms and ${attempts} attempts`];
    attempts += 1;
    done = await attempt(job);
  }
  const faults: string[] = [];
  for (let partition = 0; partition < PARTITIONS; partition += 1) {
    const written = await readPartition(brokers, { topic: job.output, partition });
    const values = written.map(({ value }) => value);
    const wrong = values.findIndex((value, n) => value !== `${partition}/${n}`);
    if (values.length !== EACH || wrong !== -1)
      faults.push(
        `${job.id}: partition ${partition} has ${values.length} of ${EACH} records, first wrong at ${wrong}: ${values[wrong]}`,
      );
  }
  const took = Math.round((performance.now() - begun) / 100) / 10;
  process.stdout.write(`${job.id}: ${attempts} attempts, ${took} s, ${faults.length} faults\n`);
  return faults;
}

async function prepare({ kafka, input, output }: Job): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  const topics = [input, output].map((topic) => ({ topic, numPartitions: PARTITIONS }));
  await admin.createTopics({ topics });
  const held = await admin.fetchTopicOffsets(input);
  await admin.disconnect();
  const producer = kafka.producer({ retry: { retries: 0 } });
  await producer.connect();
  for (const { partition, high } of held) {
    const missing = Array.from({ length: EACH - Number(high) }, (_, n) => Number(high) + n);
    if (missing.length === 0) continue;
    const messages = missing.map((n) => ({ value: `${partition}/${n}`, partition }));
    await producer.send({ topic: input, messages });
  }
  await producer.disconnect();
}

/** Copies until all is copied, or something goes wrong. */
async function attempt(job: Job): Promise<boolean> {
  const { kafka, id, input } = job;
  const producer = kafka.producer({
    transactionalId: id,
    maxInFlightRequests: 1,
    idempotent: true,
    allowAutoTopicCreation: false,
  });
  const consumer = kafka.consumer({ groupId: id, sessionTimeout: 6_000, heartbeatInterval: 500 });
  try {
    await named('connect', () => producer.connect());
    // Ends what an earlier attempt has left open, before its offsets are asked for.
    const first = await named('init', () => producer.transaction());
    await named('init', () => first.abort());
    if (await copied(job)) return true;
    await named('connect', () => consumer.connect());
    await named('subscribe', () => consumer.subscribe({ topic: input, fromBeginning: true }));
    await consumeAll(job, producer, consumer);
    return await copied(job);
  } catch (caught) {
    noteTrouble(job, caught);
    await sleep(100);
    return false;
  } finally {
    await Promise.allSettled([consumer.disconnect(), producer.disconnect()]);
  }
}

function consumeAll(
  job: Job,
  producer: kafkajs.Producer,
  consumer: kafkajs.Consumer,
): Promise<void> {
  const ended = new Set<number>();
  return new Promise((resolve, reject) => {
    consumer.on('consumer.crash', ({ payload }) => reject(payload.error));
    const eachBatch = async ({
      batch,
      resolveOffset,
      heartbeat,
      isRunning,
      isStale,
    }: kafkajs.EachBatchPayload) => {
      for (let at = 0; at < batch.messages.length && isRunning() && !isStale(); at += TAKEN) {
        const messages = batch.messages.slice(at, at + TAKEN);
        const next = Number(messages.at(-1)!.offset) + 1;
        await copy(job, producer, { partition: batch.partition, messages, next });
        resolveOffset(String(next - 1));
        if (next === EACH) ended.add(batch.partition);
        await heartbeat();
      }
      if (ended.size === PARTITIONS) resolve();
    };
    consumer
      .run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        eachBatch: (payload) =>
          eachBatch(payload).catch((caught: unknown) => {
            reject(caught);
            throw caught;
          }),
      })
      .catch(reject);
    // A rebalance may have given partitions to nobody that this one knows to have ended.
    setTimeout(() => reject(new Error('nothing more came')), 45_000).unref();
  });
}

interface Portion {
  readonly partition: number;
  readonly messages: readonly kafkajs.KafkaMessage[];
  /** The offset to go on from. */
  readonly next: number;
}

async function copy(
  { input, output, id }: Job,
  producer: kafkajs.Producer,
  { partition, messages, next }: Portion,
): Promise<void> {
  const transaction = await named('begin', () => producer.transaction());
  try {
    const values = messages.map(({ value }) => ({ value, partition }));
    await named('send', () => transaction.send({ topic: output, messages: values }));
    const offsets = [{ topic: input, partitions: [{ partition, offset: String(next) }] }];
    await named('sendOffsets', () =>
      transaction.sendOffsets({ consumerGroupId: id, topics: offsets }),
    );
    await named('commit', () => transaction.commit());
  } catch (caught) {
    await transaction.abort().catch(() => {});
    throw caught;
  }
}

/** True once the group stands at every end. */
async function copied({ kafka, id, input }: Job): Promise<boolean> {
  const admin = kafka.admin();
  try {
    await admin.connect();
    const fetched = await admin.fetchOffsets({ groupId: id, topics: [input] });
    const { partitions } = fetched[0]!;
    return partitions.filter(({ offset }) => Number(offset) === EACH).length === PARTITIONS;
  } finally {
    await admin.disconnect();
  }
}

/** Says in which call an error came up. */
async function named<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (caught) {
    throw new Error(`${what}: ${errorTexts(caught)}`);
  }
}

function noteTrouble({ troubles }: Job, caught: unknown): void {
  const text = caught instanceof Error ? errorTexts(caught) : String(caught);
  troubles.set(text, (troubles.get(text) ?? 0) + 1);
}

/** Tries until it works. */
async function insisting<T>(job: Job, what: string, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await named(what, work);
    } catch (caught) {
      noteTrouble(job, caught);
      await sleep(200);
    }
  }
}

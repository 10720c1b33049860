// What members of a kafkajs group are given while partitions change their leaders, beside what the brokers answered.
// A member that is given a record twice within one stay in its group has either been answered with what it had not asked
// for, which is a broker's fault, or asked for it twice.
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import type { RequestOf, ResponseOf } from '../../src/protocol/api.ts';
import { fetchApi } from '../../src/protocol/messages/01-fetch.ts';
import { baseOffset, batchEnd, lastOffsetDelta } from '../../src/protocol/record-batch.ts';
import type { KilledWork } from './kafkajs-acks.ts';
import { type Exchange, tappedSockets } from './wire-tap.ts';

const TOPIC = 'reads';
const GROUP = 'readers';
const PARTITIONS = 12;
const MEMBERS = 2;
const PAUSE_MS = 10;
/** Of each member, told. */
const STORIES = 2;
/** Default: five minutes. Members ask who leads all the time, not only when something is wrong. */
const METADATA_AGE_MS = 300;

/** Batches that a broker answered a Fetch of one partition with. */
interface Given {
  readonly to: string;
  readonly partition: number;
  /** The offset that was asked for. */
  readonly asked: number;
  /** Of the batches: base offset of the first, last offset of each. */
  readonly first: number;
  readonly lasts: readonly number[];
  readonly askedMs: number;
  readonly answeredMs: number;
}

const textOf = ({ to, asked, first, lasts, askedMs, answeredMs }: Given) =>
  `${to} was asked for ${asked} at ${Math.round(askedMs)} ms, gave ${first}–${lasts.at(-1)} at ${Math.round(answeredMs)} ms`;

class Member {
  readonly who: string;
  readonly given: Given[] = [];
  /** Of some of those that it was given twice. */
  readonly stories: string[] = [];
  twice = 0;
  read = 0;
  stays = 0;
  #last = new Map<number, number>();

  constructor(who: string) {
    this.who = who;
  }

  joined(): void {
    this.stays += 1;
    this.#last = new Map();
  }

  hear({ api, request, response, to, askedMs, answeredMs }: Exchange): void {
    if (api.key !== fetchApi.key) return;
    const asked = (request as RequestOf<typeof fetchApi>).topics[0]?.partitions ?? [];
    const answers = (response as ResponseOf<typeof fetchApi>).responses[0]?.partitions ?? [];
    for (const { partitionIndex: partition, records } of answers) {
      if (records === null || records.length === 0) continue;
      const from = asked.find((one) => one.partition === partition)!.fetchOffset;
      const lasts: number[] = [];
      for (let at = 0, end: number; (end = batchEnd(records, at)) !== -1; at = end)
        lasts.push(baseOffset(records, at) + lastOffsetDelta(records, at));
      const first = baseOffset(records, 0);
      this.given.push({ to, partition, asked: from, first, lasts, askedMs, answeredMs });
    }
  }

  take({ partition, messages }: kafkajs.Batch): void {
    for (const { offset } of messages) {
      const at = Number(offset);
      const before = this.#last.get(partition);
      if (before !== undefined && at <= before) {
        this.twice += 1;
        if (this.stories.length < STORIES) this.stories.push(this.#story(partition, at));
      }
      this.#last.set(partition, at);
      this.read += 1;
    }
  }

  #story(partition: number, offset: number): string {
    const givers = this.given.filter(
      ({ partition: of, first, lasts }) =>
        of === partition && first <= offset && offset <= lasts.at(-1)!,
    );
    return [`${partition}@${offset}:`, ...givers.map(textOf)].join('\n    ');
  }

  /** Answers with batches that lie before what was asked for. */
  wrong(): readonly string[] {
    return this.given
      .filter(({ asked, lasts }) => lasts.some((last) => last < asked))
      .map((given) => `${this.who}: partition ${given.partition}: ${textOf(given)}`);
  }

  /** Answers from two brokers to the same question, asked of the one while it waited at the other. */
  both(): number {
    let count = 0;
    const lastBy = new Map<string, Given>();
    for (const given of this.given) {
      const key = `${given.partition}@${given.asked}`;
      const other = lastBy.get(key);
      if (other !== undefined && other.to !== given.to && given.askedMs < other.answeredMs)
        count += 1;
      lastBy.set(key, given);
    }
    return count;
  }
}

/** @returns what is the brokers' fault. */
export async function readsUnderMoves({ brokers, kills }: KilledWork): Promise<readonly string[]> {
  const options = { brokers: [...brokers], logLevel: kafkajs.logLevel.NOTHING };
  const kafka = new kafkajs.Kafka({ clientId: 'writer', ...options });
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: PARTITIONS }] });
  await admin.disconnect();
  let over = false;
  const load = write(kafka, () => over);
  const members = Array.from({ length: MEMBERS }, (_, n) => new Member(`member ${n}`));
  await Promise.all(members.map((member) => reads(member, options)));
  let count = 0;
  await kills(() => {
    count += 1;
    const twice = members.map((member) => `${member.read} read, ${member.twice} twice`);
    process.stdout.write(`${count} brokers ended; ${twice.join('; ')}\n`);
  });
  over = true;
  const written = await load;
  const sum = (of: (member: Member) => number) => members.reduce((all, one) => all + of(one), 0);
  process.stdout.write(
    [
      `${written} records written; ${sum(({ read }) => read)} read in ${sum(({ stays }) => stays)} stays in the group`,
      `two brokers gave the same, asked of both at once: ${sum((member) => member.both())}`,
      `the client's: ${sum(({ twice }) => twice)} records given twice within a stay`,
      ...members.flatMap(({ stories }) => stories).map((story) => `  ${story}`),
      '',
    ].join('\n'),
  );
  return members.flatMap((member) => member.wrong());
}

/** One record after the other to each partition, until it is over. @returns how many were acked. */
async function write(kafka: kafkajs.Kafka, over: () => boolean): Promise<number> {
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  let written = 0;
  const writeTo = async (partition: number) => {
    while (!over()) {
      try {
        await producer.send({ topic: TOPIC, messages: [{ value: 'x', partition }] });
        written += 1;
      } catch {
        // Whatever became of it: who reads is judged by what is there.
      }
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: PARTITIONS }, (_, partition) => writeTo(partition)));
  await producer.disconnect();
  return written;
}

/**
 * A member for as long as the process lives, begun again when it crashes. It isn't ended: 2.2.4 may go round for ever in its
 * `disconnect` after brokers came or went (a fetcher that is not running any more asks a runner that isn't either).
 */
async function reads(
  member: Member,
  options: Pick<kafkajs.KafkaConfig, 'brokers' | 'logLevel'>,
): Promise<void> {
  const kafka = new kafkajs.Kafka({
    clientId: member.who,
    ...options,
    socketFactory: tappedSockets((exchange) => member.hear(exchange)),
  });
  const consumer = kafka.consumer({
    groupId: GROUP,
    metadataMaxAge: METADATA_AGE_MS,
    sessionTimeout: 6_000,
    heartbeatInterval: 500,
    retry: { restartOnFailure: async () => true },
  });
  consumer.on('consumer.group_join', () => member.joined());
  await consumer.connect();
  await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
  await consumer.run({ eachBatch: async ({ batch }) => member.take(batch) });
}

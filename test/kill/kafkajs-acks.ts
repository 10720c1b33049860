// What kafkajs calls sent, beside what the brokers acked on the wire and what the log holds in the end.
import kafkajs from 'kafkajs';
import type { Prng } from '../../src/base/prng.ts';
import type { RequestOf, ResponseOf } from '../../src/protocol/api.ts';
import { produceApi } from '../../src/protocol/messages/00-produce.ts';
import { readRecords } from '../../src/protocol/records.ts';
import { readLog } from '../oracles/read-log.ts';
import { type Exchange, tappedSockets } from './wire-tap.ts';

export interface KilledWork {
  readonly brokers: readonly string[];
  /** Kills brokers until it resolves. */
  kills(onKill: (nodeId: number) => void): Promise<void>;
  readonly prng: Prng;
}

const TOPIC = 'acks';
const PARTITIONS = 12;
const PRODUCERS = 2;
/** Of one send; several partitions of each broker. */
const BATCH = 48;

/** One `send`, by the ids of its records. */
interface Sent {
  readonly ids: readonly number[];
  /** True once the client has said that it was sent. */
  told: boolean;
  /** What was asked and answered on its behalf. */
  readonly wire: string[];
}

class Ledger {
  readonly sends: Sent[] = [];
  readonly byId = new Map<number, Sent>();
  /** `partition:offset` of each record that was acked, by its id. */
  readonly acked = new Map<number, string>();
  readonly codes = new Map<number, number>();

  begin(): Sent {
    const first = this.byId.size;
    const sent = {
      ids: Array.from({ length: BATCH }, (_, n) => first + n),
      told: false,
      wire: [],
    };
    this.sends.push(sent);
    for (const id of sent.ids) this.byId.set(id, sent);
    return sent;
  }

  hear({ api, request, response, to }: Exchange): void {
    if (api.key !== produceApi.key) return;
    const { topicData } = request as RequestOf<typeof produceApi>;
    const { responses } = response as ResponseOf<typeof produceApi>;
    const answers = responses[0]?.partitionResponses ?? [];
    for (const { index, records } of topicData[0]?.partitionData ?? []) {
      const { errorCode, baseOffset } = answers.find((answer) => answer.index === index)!;
      this.codes.set(errorCode, (this.codes.get(errorCode) ?? 0) + 1);
      const ids = [...readRecords(records!)].map(({ value }) => Number(String(value)));
      this.byId.get(ids[0]!)?.wire.push(`${to} partition ${index} code ${errorCode}`);
      if (errorCode !== 0) continue;
      for (const [n, id] of ids.entries()) this.acked.set(id, `${index}:${baseOffset + n}`);
    }
  }
}

/** @returns what is the brokers' fault. */
export async function acksUnderKills({ brokers, kills }: KilledWork): Promise<readonly string[]> {
  const ledger = new Ledger();
  const kafka = new kafkajs.Kafka({
    clientId: 'acks',
    brokers: [...brokers],
    logLevel: kafkajs.logLevel.NOTHING,
    socketFactory: tappedSockets((exchange) => ledger.hear(exchange)),
  });
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: PARTITIONS }] });
  await admin.disconnect();
  let over = false;
  const loads = Array.from({ length: PRODUCERS }, () => load(kafka, ledger, () => over));
  let count = 0;
  await kills(() => {
    count += 1;
    if (count % 10 === 0)
      process.stdout.write(`${count} kills, ${ledger.acked.size} records acked\n`);
  });
  over = true;
  await Promise.all(loads);
  return judge(ledger, await readLog(brokers, TOPIC, PARTITIONS));
}

/** With the retries that kafkajs has by default. */
async function load(kafka: kafkajs.Kafka, ledger: Ledger, over: () => boolean): Promise<void> {
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  while (!over()) {
    const sent = ledger.begin();
    const messages = sent.ids.map((id) => ({ value: String(id), partition: id % PARTITIONS }));
    try {
      await producer.send({ topic: TOPIC, messages, acks: -1 });
      sent.told = true;
    } catch {
      // Whatever became of it: its records may be there or not.
    }
  }
  await producer.disconnect();
}

function judge(ledger: Ledger, log: Awaited<ReturnType<typeof readLog>>): readonly string[] {
  const places = new Map<number, Set<string>>();
  for (const { partition, offset, value } of log) {
    const id = Number(value);
    const at = places.get(id) ?? new Set();
    places.set(id, at.add(`${partition}:${offset}`));
  }
  const lost = [...ledger.acked].filter(([id, place]) => places.get(id)?.has(place) !== true);
  const unanswered = ledger.sends.filter(
    ({ ids, told }) => told && ids.some((id) => !ledger.acked.has(id)),
  );
  const missing = ledger.sends.flatMap(({ ids, told }) =>
    told ? ids.filter((id) => !places.has(id)) : [],
  );
  const told = ledger.sends.filter((sent) => sent.told).length;
  const twice = [...places.values()].filter((at) => at.size > 1).length;
  process.stdout.write(
    [
      `${ledger.sends.length} sends, ${told} told as sent; ${ledger.acked.size} records acked on the wire, ${log.length} in the log`,
      `answers by code: ${[...ledger.codes].map(([code, n]) => `${code}: ${n}`).join(', ')}`,
      `the client's: ${unanswered.length} sends told as sent that nobody had acked whole, ${missing.length} of their records are nowhere; ${twice} records twice`,
      ...unanswered.slice(0, 2).map(({ ids, wire }) => {
        const open = ids.filter((id) => !ledger.acked.has(id)).map((id) => id % PARTITIONS);
        return `  never acked: partitions ${[...new Set(open)].join(', ')}; on the wire:\n    ${wire.join('\n    ')}`;
      }),
      '',
    ].join('\n'),
  );
  return lost.map(([id, place]) => `record ${id} was acked at ${place}, the log lacks it`);
}

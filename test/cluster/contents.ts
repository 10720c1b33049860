// What a node is filled with before it is moved or backed up, and how a cluster shows that it has all of it: records of a
// topic, tables of rows and of upserts, an aborted transaction, a deleted topic, the offset of a group. Small, of each kind.
import { avroEncoder, registerAvro } from '../../src/cli/avro-value.ts';
import { awaitRows } from '../../src/cli/await-rows.ts';
import type { ChildNode } from '../../src/cli/child.ts';
import { call } from '../../src/cli/http-client.ts';
import { kafkaClient } from '../../src/cli/kafka-client.ts';

const SCHEMA = JSON.stringify({
  type: 'record',
  name: 'Order',
  fields: [
    { name: 'id', type: 'long' },
    { name: 'what', type: 'string' },
  ],
});
const ROWS = 60;
const LATER = 5;
const KEYS = 10;

const keysOf = (from: number, count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => String(from + n));

/** What {@link fill} writes to `orders`, what {@link more} adds, and where the group `readers` stands in partition 1. */
export const BEFORE = {
  keys: keysOf(0, ROWS),
  laterKeys: keysOf(ROWS, LATER),
  readerOffset: '7',
} as const;

/** Tables with their rows after {@link fill} and after {@link more}; `version` of those that are upserted. */
export const TABLES: readonly {
  readonly topic: string;
  readonly rows: number;
  readonly rowsLater: number;
  readonly version?: string;
}[] = [
  { topic: 'orders', rows: ROWS, rowsLater: ROWS + LATER },
  // Position deletes (v2) and deletion vectors (v3): half of what is written later replaces rows.
  { topic: 'positions', rows: KEYS, rowsLater: KEYS + LATER, version: '2' },
  { topic: 'vectors', rows: KEYS, rowsLater: KEYS + LATER, version: '3' },
];
const UPSERTS = TABLES.filter(({ version }) => version !== undefined);

export async function fill(node: ChildNode): Promise<void> {
  const kafka = kafkaClient(node.addresses.kafka);
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({
    topics: [
      { topic: 'orders', numPartitions: 2, configEntries: tableConfig() },
      { topic: 'gone', numPartitions: 1 },
      { topic: 'plain', numPartitions: 1 },
      ...UPSERTS.map(({ topic, version }) => ({
        topic,
        numPartitions: 1,
        configEntries: tableConfig({
          'table.topic.upsert.enable': 'true',
          'table.topic.id.columns': '[id]',
          'table.topic.format.version': version!,
        }),
      })),
    ],
  });
  await admin.deleteTopics({ topics: ['gone'] });
  const group = { groupId: 'readers', topic: 'orders' };
  await admin.setOffsets({
    ...group,
    partitions: [{ partition: 1, offset: BEFORE.readerOffset }],
  });
  await admin.disconnect();
  await abortOne(node);
  await send(node, { topic: 'orders', from: 0, count: ROWS });
  for (const round of [1, 2]) {
    for (const { topic } of UPSERTS) await send(node, { topic, from: 0, count: KEYS });
    await commit(node, 'orders', ROWS);
    for (const { topic } of UPSERTS) await commit(node, topic, KEYS * round);
  }
}

/** What comes after a backup or a move. */
export async function more(node: ChildNode): Promise<void> {
  await send(node, { topic: 'orders', from: ROWS, count: LATER });
  for (const { topic } of UPSERTS) await send(node, { topic, from: LATER, count: KEYS });
  await commit(node, 'orders', ROWS + LATER);
  for (const { topic } of UPSERTS) await commit(node, topic, 3 * KEYS);
}

function tableConfig(others: Readonly<Record<string, string>> = {}) {
  return Object.entries({
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': 'by_schema_id',
    'table.topic.commit.interval.ms': '100',
    ...others,
  }).map(([name, value]) => ({ name, value }));
}

async function abortOne(node: ChildNode): Promise<void> {
  const producer = kafkaClient(node.addresses.kafka).producer({
    transactionalId: 'mover',
    maxInFlightRequests: 1,
  });
  await producer.connect();
  const transaction = await producer.transaction();
  await transaction.send({ topic: 'plain', messages: [{ value: 'aborted' }] });
  await transaction.abort();
  await producer.disconnect();
}

interface Sent {
  readonly topic: string;
  readonly from: number;
  readonly count: number;
}

async function send(node: ChildNode, { topic, from, count }: Sent): Promise<void> {
  const schemaId = await registerAvro(node.addresses.registry, `${topic}-value`, SCHEMA);
  const encoder = avroEncoder(SCHEMA, schemaId);
  const producer = kafkaClient(node.addresses.kafka).producer();
  await producer.connect();
  const messages = keysOf(from, count).map((key) => ({
    key,
    value: encoder.encode({ id: Number(key), what: `thing ${key}` }),
  }));
  await producer.send({ topic, messages });
  await producer.disconnect();
}

/** The table has committed all of its topic, `rows` of them by its node. */
async function commit(node: ChildNode, topic: string, rows: number): Promise<void> {
  const server = node.addresses.http;
  await call({ server, path: `/v1/tables/${topic}/commit`, method: 'POST' });
  await awaitRows({ server, topic, rows });
}

/** Keys of all records of `orders`, sorted. */
export async function readKeys(node: ChildNode): Promise<readonly string[]> {
  const kafka = kafkaClient(node.addresses.kafka);
  const admin = kafka.admin();
  await admin.connect();
  const ends = await admin.fetchTopicOffsets('orders');
  await admin.disconnect();
  const expected = ends.reduce((sum, { offset }) => sum + Number(offset), 0);
  const consumer = kafka.consumer({ groupId: `all-${Math.random()}` });
  await consumer.connect();
  await consumer.subscribe({ topic: 'orders', fromBeginning: true });
  const found: string[] = [];
  await new Promise<void>((resolve) => {
    void consumer.run({
      eachMessage: async ({ message }) => {
        if (found.push(message.key!.toString()) === expected) resolve();
      },
    });
  });
  await consumer.disconnect();
  return found.toSorted();
}

export async function countRows(node: ChildNode, table: string): Promise<number> {
  const body = { query: `SELECT count(*) AS n FROM ${table}` };
  const answer = await call({ server: node.addresses.http, path: '/v1/sql', method: 'POST', body });
  const { rows } = (await answer.json()) as { readonly rows: readonly (readonly unknown[])[] };
  return Number(rows[0]![0]);
}

/** Where the group `readers` stands in partition 1 of `orders`. */
export async function readerOffset(node: ChildNode): Promise<string> {
  const admin = kafkaClient(node.addresses.kafka).admin();
  await admin.connect();
  const [offsets] = await admin.fetchOffsets({ groupId: 'readers', topics: ['orders'] });
  await admin.disconnect();
  return offsets!.partitions.find(({ partition }) => partition === 1)!.offset;
}

// A topic as its log holds it, read at the wire by whichever broker answers: a group of an ordinary client would bring its
// own troubles, and kafkajs gives aborted records away when transactions overlap. Not for: tails, groups.
import { setTimeout as sleep } from 'node:timers/promises';
import { type WireClient, withWire } from '../../src/cli/wire-client.ts';
import { fetchApi } from '../../src/protocol/messages/01-fetch.ts';
import {
  baseOffset,
  batchEnd,
  isControl,
  isTransactional,
  lastOffsetDelta,
  producerId,
} from '../../src/protocol/record-batch.ts';
import { readRecords } from '../../src/protocol/records.ts';

export interface LoggedRecord {
  readonly partition: number;
  readonly offset: number;
  readonly key: string | null;
  readonly value: string | null;
}

/** The last version that names topics. */
const FETCH_VERSION = 12;
/** Every broker is asked so often before the read fails. */
const TRIES = 10;

interface Place {
  readonly topic: string;
  readonly partition: number;
}

/** All committed records up to the end at some time after the call, in order within each partition. */
export async function readLog(
  brokers: readonly string[],
  topic: string,
  partitions: number,
): Promise<readonly LoggedRecord[]> {
  const all: LoggedRecord[] = [];
  for (let partition = 0; partition < partitions; partition += 1)
    all.push(...(await readPartition(brokers, { topic, partition })));
  return all;
}

/** As {@link readLog}, one partition. @throws what the last broker said when none answers. */
export async function readPartition(
  brokers: readonly string[],
  place: Place,
): Promise<readonly LoggedRecord[]> {
  for (let n = 0; ; n += 1) {
    try {
      return await withWire(brokers[n % brokers.length]!, (client) => readWhole(client, place));
    } catch (caught) {
      if (n >= TRIES * brokers.length) throw caught;
      await sleep(300);
    }
  }
}

async function readWhole(client: WireClient, place: Place): Promise<readonly LoggedRecord[]> {
  const records: LoggedRecord[] = [];
  for (let offset = 0; ; ) {
    const answer = await fetchAt(client, place, offset);
    const next = take(answer, records, place.partition);
    if (next === undefined && offset < answer.lastStableOffset)
      throw new Error(`nothing at ${offset}, below the last stable offset`);
    offset = next ?? offset;
    if (offset >= answer.lastStableOffset) return records;
  }
}

interface Answer {
  readonly records: Uint8Array | null;
  readonly lastStableOffset: number;
  readonly abortedTransactions:
    | readonly { readonly producerId: number; readonly firstOffset: number }[]
    | null;
}

async function fetchAt(
  client: WireClient,
  { topic, partition }: Place,
  fetchOffset: number,
): Promise<Answer> {
  const asked = { partition, fetchOffset, partitionMaxBytes: 1 << 20, currentLeaderEpoch: -1 };
  const { responses } = await client.ask(
    fetchApi,
    {
      maxWaitMs: 100,
      minBytes: 1,
      maxBytes: 1 << 24,
      isolationLevel: 1,
      sessionId: 0,
      sessionEpoch: -1,
      topics: [{ topic, partitions: [asked] }],
      forgottenTopicsData: [],
    },
    FETCH_VERSION,
  );
  const answer = responses[0]!.partitions[0]!;
  if (answer.errorCode !== 0) throw new Error(`Fetch answers ${answer.errorCode}`);
  return answer;
}

/** Adds what is committed to `records`. @returns where to go on, undefined when there was nothing. */
function take(
  { records: bytes, abortedTransactions }: Answer,
  records: LoggedRecord[],
  partition: number,
): number | undefined {
  const upcoming = (abortedTransactions ?? []).toSorted((a, b) => a.firstOffset - b.firstOffset);
  const open = new Set<number>();
  const text = (part: Uint8Array | null) => (part === null ? null : Buffer.from(part).toString());
  let next: number | undefined;
  if (bytes === null) return next;
  for (let at = 0, end: number; (end = batchEnd(bytes, at)) !== -1; at = end) {
    const base = baseOffset(bytes, at);
    while (upcoming.length > 0 && upcoming[0]!.firstOffset <= base)
      open.add(upcoming.shift()!.producerId);
    const by = producerId(bytes, at);
    if (isControl(bytes, at)) open.delete(by);
    else if (!(isTransactional(bytes, at) && open.has(by)))
      for (const { offset, key, value } of readRecords(bytes.subarray(at, end)))
        records.push({ partition, offset, key: text(key), value: text(value) });
    next = base + lastOffsetDelta(bytes, at) + 1;
  }
  return next;
}

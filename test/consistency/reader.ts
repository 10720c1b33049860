// Reads a partition at the wire, and leaves aborted records out as the protocol asks. The JavaScript clients at hand get
// that wrong when transactions overlap (kafkajs 2.2.4 enters one aborted transaction a record, @platformatic/kafka keeps
// one range a producer), on every broker, so they can't judge it.
import { setTimeout as sleep } from 'node:timers/promises';
import { type WireClient, withWire } from '../../src/cli/wire-client.ts';
import { ErrorCode } from '../../src/protocol/errors.ts';
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
import { TOPIC } from './topic.ts';

/** The last version that names topics. */
const FETCH_VERSION = 12;
const WAIT_MS = 300;

export interface Position {
  readonly partition: number;
  readonly offset: number;
  readonly committedOnly: boolean;
}

export interface Fetched {
  readonly records: readonly (readonly [number, string])[];
  /** Where to go on. */
  readonly next: number;
}

/** One poll. @throws FloeError when the server goes away. */
export async function poll(client: WireClient, at: Position): Promise<Fetched> {
  const partitions = [
    {
      partition: at.partition,
      fetchOffset: at.offset,
      partitionMaxBytes: 1 << 20,
      currentLeaderEpoch: -1,
    },
  ];
  const { responses } = await client.ask(
    fetchApi,
    {
      maxWaitMs: WAIT_MS,
      minBytes: 1,
      maxBytes: 1 << 24,
      isolationLevel: at.committedOnly ? 1 : 0,
      sessionId: 0,
      sessionEpoch: -1,
      topics: [{ topic: TOPIC, partitions }],
      forgottenTopicsData: [],
    },
    FETCH_VERSION,
  );
  const answer = responses[0]?.partitions[0];
  if (answer?.errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER) {
    // For a moment after another broker came; who stays is served again.
    await sleep(WAIT_MS);
    return { records: [], next: at.offset };
  }
  if (answer === undefined || answer.errorCode !== 0) {
    const type = String(answer?.errorCode ?? 'EMPTY');
    const text = `fetch of partition ${at.partition} from ${at.offset} refused: ${type}`;
    throw Object.assign(new Error(text), { type });
  }
  const bytes = answer.records;
  return bytes === null
    ? { records: [], next: at.offset }
    : take(bytes, answer.abortedTransactions ?? [], at);
}

function take(
  bytes: Uint8Array,
  aborted: readonly { readonly producerId: number; readonly firstOffset: number }[],
  { offset: from }: Position,
): Fetched {
  const upcoming = aborted.toSorted((a, b) => a.firstOffset - b.firstOffset);
  const open = new Set<number>();
  const records: [number, string][] = [];
  let next = from;
  for (let at = 0, end: number; (end = batchEnd(bytes, at)) !== -1; at = end) {
    const base = baseOffset(bytes, at);
    while (upcoming.length > 0 && upcoming[0]!.firstOffset <= base)
      open.add(upcoming.shift()!.producerId);
    const by = producerId(bytes, at);
    if (isControl(bytes, at)) open.delete(by);
    else if (!(isTransactional(bytes, at) && open.has(by)))
      for (const { offset, value } of readRecords(bytes.subarray(at, end)))
        if (offset >= from)
          records.push([offset, (JSON.parse(String(value)) as { value: string }).value]);
    next = base + lastOffsetDelta(bytes, at) + 1;
  }
  return { records, next };
}

/** {@link withWire} to one of several servers, `HOST:PORT,…`; the next one by the next call when it is away. */
export async function withAnyWire<T>(
  servers: string,
  work: (client: WireClient) => Promise<T>,
): Promise<T> {
  const all = servers.split(',');
  turn += 1;
  return withWire(all[turn % all.length]!, work);
}

let turn = 0;

export type { WireClient };

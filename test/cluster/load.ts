// Clients at the wire for `overload.ts`: producers that send numbered records, as many at a time as they are told to; readers
// that read nothing of what they ask for, or next to nothing; one that reads all. A ledger holds what was acknowledged
// against what was read. Not for: what goes wrong and when (overload.ts).
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { RawClient } from '../../src/broker/testing/raw-client.ts';
import { batchOf, fetchRequest, produceRequest } from '../../src/broker/testing/requests.ts';
import { ErrorCode } from '../../src/protocol/errors.ts';
import { produceApi } from '../../src/protocol/messages/00-produce.ts';
import { fetchApi } from '../../src/protocol/messages/01-fetch.ts';
import { batchEnd } from '../../src/protocol/record-batch.ts';
import { readRecords } from '../../src/protocol/records.ts';

/** Of requests: longer than any trouble lasts, so that nothing has to be refused. */
const TIMEOUT_MS = 60_000;
const MIB = 2 ** 20;
const SIP_BYTES = 16_384;
const SIP_MS = 200;

/** Where a client connects, and from which address: to a broker without authentication, that is who it is. */
export interface At {
  readonly port: number;
  readonly from: string;
}

async function clientAt({ port, from }: At, clientId?: string): Promise<RawClient> {
  const socket = connect({ host: '127.0.0.1', port, localAddress: from, noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('connect', resolve);
  });
  return RawClient.over(socket, clientId);
}

/** Acknowledged records of one partition, by their numbers, against those that were read from it. */
export class Ledger {
  readonly topic: string;
  readonly #acked = new Map<number, number>();
  readonly #read = new Map<number, number>();
  readonly faults: string[] = [];
  #numbers: number;

  /** @param firstNumber of records that are sent. */
  constructor(topic: string, firstNumber = 0) {
    this.topic = topic;
    this.#numbers = firstNumber;
  }

  next(): number {
    return this.#numbers++;
  }

  acknowledged(number: number, offset: number): void {
    this.#acked.set(number, offset);
  }

  read(number: number, offset: number): void {
    const before = this.#read.get(number);
    if (before !== undefined)
      this.faults.push(`${this.topic}: record ${number} at ${before} and at ${offset}`);
    this.#read.set(number, offset);
  }

  /** Of the acknowledged records. */
  get numbers(): readonly number[] {
    return [...this.#acked.keys()];
  }

  /** The offset that was acknowledged. */
  said(number: number): number | undefined {
    return this.#acked.get(number);
  }

  /** The offset that it was read at. */
  where(number: number): number | undefined {
    return this.#read.get(number);
  }

  /** How many. */
  get acked(): number {
    return this.#acked.size;
  }

  /** Acknowledged and not read, or elsewhere than it was said. */
  missing(): string[] {
    return [...this.#acked]
      .filter(([number, offset]) => this.#read.get(number) !== offset)
      .map(
        ([number, offset]) =>
          `${this.topic}: record ${number} was acknowledged at ${offset}, read at ${this.#read.get(number) ?? 'none'}`,
      );
  }
}

export interface Producing extends At {
  readonly ledger: Ledger;
  /** Of each record, and of each request but for a few bytes. */
  readonly bytes: number;
  /** Requests sent and not answered. */
  readonly underWay: number;
  /** Between an answer and the next request. */
  readonly pauseMs?: number;
  readonly onAck: (ms: number) => void;
  readonly onRefused: (errorCode: number) => void;
}

/** Produces, by the name of the topic, until told to stop, then until the last answer. @throws when the server hangs up. */
export async function produce(options: Producing, stop: AbortSignal): Promise<void> {
  const { ledger, bytes, underWay, pauseMs = 0, onAck, onRefused } = options;
  const client = await clientAt(options, ledger.topic);
  const value = Buffer.alloc(bytes, 'x');
  const sent: { readonly number: number; readonly atMs: number }[] = [];
  const send = () => {
    const number = ledger.next();
    const records = batchOf([{ key: String(number), value }]);
    const request = produceRequest(ledger.topic, records, { timeoutMs: TIMEOUT_MS });
    sent.push({ number, atMs: performance.now() });
    client.send(produceApi, 8, request);
  };
  try {
    while (sent.length < underWay) send();
    while (sent.length > 0) {
      const { response } = await client.receive(produceApi, 8);
      const { number, atMs } = sent.shift()!;
      const { errorCode, baseOffset } = response.responses[0]!.partitionResponses[0]!;
      if (errorCode === 0) {
        ledger.acknowledged(number, baseOffset);
        onAck(performance.now() - atMs);
      } else onRefused(errorCode);
      if (pauseMs > 0 && !stop.aborted) await sleep(pauseMs);
      if (!stop.aborted) send();
    }
  } finally {
    client.close();
  }
}

/** Asks for a whole topic, again and again, and reads nothing of it, or a sip now and then. @returns how to end it. */
export async function hardlyRead(at: At, topic: string, sips: boolean): Promise<() => void> {
  const client = await clientAt(at);
  const { socket } = client;
  socket.pause();
  const ask = () =>
    client.send(
      fetchApi,
      11,
      fetchRequest([{ topic, maxBytes: 50 * MIB }], { maxBytes: 50 * MIB }),
    );
  for (let n = 0; n < 50; n += 1) ask();
  const sipping = sips
    ? setInterval(() => {
        socket.read(SIP_BYTES);
      }, SIP_MS)
    : undefined;
  return () => {
    clearInterval(sipping);
    client.close();
  };
}

/** Reads everything, from the first record on, until told to stop. @throws at an error or when the server hangs up. */
export async function follow(at: At, ledger: Ledger, stop: AbortSignal): Promise<void> {
  const client = await clientAt(at);
  try {
    for (let offset = 0; !stop.aborted; ) {
      const from = [{ topic: ledger.topic, offset, maxBytes: 8 * MIB }];
      const { responses } = await client.call(fetchApi, 11, fetchRequest(from, { maxWaitMs: 500 }));
      const { errorCode, records } = responses[0]!.partitions[0]!;
      if (errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER) {
        // For a moment after another broker came; who stays is served again.
        await sleep(100);
        continue;
      }
      if (errorCode !== 0) throw new Error(`${ledger.topic}: fetch at ${offset}: ${errorCode}`);
      if (records === null) continue;
      for (let begin = 0, end: number; (end = batchEnd(records, begin)) !== -1; begin = end)
        for (const record of readRecords(records.subarray(begin, end))) {
          if (record.offset < offset) continue;
          ledger.read(Number(String(record.key)), record.offset);
          offset = record.offset + 1;
        }
    }
  } finally {
    client.close();
  }
}

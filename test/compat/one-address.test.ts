import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { RawClient } from '../../src/broker/testing/raw-client.ts';
import {
  addPartitionsToTxnApi,
  apiVersionsApi,
  ErrorCode,
  encodeResponse,
  FrameDecoder,
  heartbeatApi,
  offsetFetchApi,
  openRequest,
  produceApi,
} from '../../src/protocol/index.ts';
import { type OneAddress, startOneAddress } from './one-address.ts';

const HEARTBEAT = { groupId: 'g', generationId: 1, memberId: 'm' };

/** Answers with `code` in whatever place, closes at what is no frame. */
interface FakeBroker {
  readonly port: number;
  /** Names of APIs. */
  readonly asked: string[];
  readonly server: Server;
}

async function fakeBroker(code: number, group?: string): Promise<FakeBroker> {
  const asked: string[] = [];
  const server = createServer((socket) => {
    const decoder = new FrameDecoder();
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      try {
        for (const frame of decoder.push(chunk)) answer(socket, frame);
      } catch {
        socket.destroy();
      }
    });
  });
  function answer(socket: Socket, frame: Buffer): void {
    const { api, version, correlationId, body } = openRequest(frame);
    asked.push(api.name);
    if (api === produceApi && produceApi.request.decode(body, version).acks === 0) return;
    const response = {
      errorCode: api === apiVersionsApi ? 0 : code,
      apiKeys: [],
      resultsByTopicV3AndBelow: [
        { name: 't', resultsByPartition: [{ partitionIndex: 0, partitionErrorCode: code }] },
      ],
      responses: [
        { name: 't', partitionResponses: [{ index: 0, errorCode: code, baseOffset: 7 }] },
      ],
      groups: ['g', 'h'].map((groupId) => ({
        groupId,
        topics: [],
        errorCode: groupId === group ? 0 : code,
      })),
    };
    socket.write(Buffer.concat(encodeResponse({ api, version, correlationId, response })));
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, asked, server };
}

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

async function inFrontOf(
  codes: readonly number[],
  groups: readonly string[] = [],
): Promise<[RawClient, readonly FakeBroker[]]> {
  const brokers = await Promise.all(codes.map((code, at) => fakeBroker(code, groups[at])));
  const front: OneAddress = await startOneAddress(brokers.map(({ port }) => port));
  const client = await RawClient.connect(Number(front.address.split(':')[1]));
  ends.push(() => {
    client.close();
    front.stop();
    for (const { server } of brokers) server.close();
  });
  return [client, brokers];
}

describe('one address before brokers', () => {
  it('asks on until a broker coordinates', async () => {
    const [client, brokers] = await inFrontOf([ErrorCode.NOT_COORDINATOR, ErrorCode.NONE, 0]);
    expect(await client.call(heartbeatApi, 3, HEARTBEAT)).toMatchObject({ errorCode: 0 });
    expect(brokers.map(({ asked }) => asked.length)).toEqual([1, 1, 0]);
  });

  it('hands on the answer when nobody coordinates, and every other error as it is', async () => {
    const [lost] = await inFrontOf([ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR]);
    expect(await lost.call(heartbeatApi, 3, HEARTBEAT)).toMatchObject({ errorCode: 16 });
    const [client, brokers] = await inFrontOf([ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]);
    expect(await client.call(heartbeatApi, 3, HEARTBEAT)).toMatchObject({ errorCode: 25 });
    expect(brokers[1]!.asked).toEqual([]);
  });

  it('finds codes in whatever place they stand', async () => {
    const [client, brokers] = await inFrontOf([ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]);
    const transaction = { transactionalId: 'x', producerId: 1, producerEpoch: 0, topics: [] };
    await client.call(addPartitionsToTxnApi, 2, {
      ...{ v3AndBelowTransactionalId: 'x', v3AndBelowProducerId: 1, v3AndBelowProducerEpoch: 0 },
      ...{ v3AndBelowTopics: [], transactions: [transaction] },
    });
    expect(brokers.map(({ asked }) => asked.length)).toEqual([1, 1]);
  });

  it('stays with the broker that led', async () => {
    const [client, brokers] = await inFrontOf([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]);
    const produce = { transactionalId: null, acks: -1, timeoutMs: 1, topicData: [] };
    await client.call(produceApi, 8, produce);
    await client.call(produceApi, 8, produce);
    expect(brokers.map(({ asked }) => asked.length)).toEqual([1, 2]);
  });

  it('puts groups of several coordinators together', async () => {
    const codes = [ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR];
    const [client] = await inFrontOf(codes, ['h', 'g']);
    const groups = ['g', 'h'].map((groupId) => ({ groupId, topics: null }));
    const reply = await client.call(offsetFetchApi, 8, { groupId: '', topics: [], groups });
    expect(reply.groups.map(({ errorCode }) => errorCode)).toEqual([0, 0]);
  });

  it('waits for no answer to a produce that wants none', async () => {
    const [client, brokers] = await inFrontOf([0, 0]);
    client.send(produceApi, 8, { transactionalId: null, acks: 0, timeoutMs: 1, topicData: [] });
    await client.call(apiVersionsApi, 0, { clientSoftwareName: '', clientSoftwareVersion: '' });
    expect(brokers[0]!.asked).toHaveLength(2);
  });

  it('closes when a broker does, at bytes that are no frame too', async () => {
    const [client] = await inFrontOf([0, 0]);
    client.socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff]));
    await client.closed;
    expect(client.isClosed).toBe(true);
  });
});

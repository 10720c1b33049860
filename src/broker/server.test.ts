// Sockets: hostile bytes, order of replies, back-pressure, limits, timeouts, graceful stop.
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock, systemClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { noMetrics } from '../base/metrics.ts';
import { encodeRequest } from '../protocol/envelope.ts';
import { produceApi } from '../protocol/messages/00-produce.ts';
import { fetchApi } from '../protocol/messages/01-fetch.ts';
import { metadataApi } from '../protocol/messages/03-metadata.ts';
import { apiVersionsApi } from '../protocol/messages/18-api-versions.ts';
import { readRecords } from '../protocol/records.ts';
import { TEST_CERTIFICATE } from './testing/certificate.ts';
import { startTestBroker, type TestBroker, type TestBrokerOptions } from './testing/harness.ts';
import { RawClient } from './testing/raw-client.ts';
import { batchOf, fetchRequest, produceRequest } from './testing/requests.ts';
import { startSecureBroker, TEST_KEYSTORE, testFiles } from './testing/secure-broker.ts';

let test: TestBroker;
const clients: RawClient[] = [];

async function start(options: TestBrokerOptions = {}): Promise<void> {
  test = await startTestBroker(options);
  await createTopic();
}

async function createTopic(): Promise<void> {
  await test.directory.create({
    topicId: '00000000-0000-4000-8000-000000000001',
    name: 't',
    partitionCount: 2,
    config: {},
    nowMs: 0,
  });
}

async function client(): Promise<RawClient> {
  const connected = await RawClient.connect(test.port);
  clients.push(connected);
  return connected;
}

const versions = (on: RawClient) =>
  on.call(apiVersionsApi, 0, { clientSoftwareName: '', clientSoftwareVersion: '' });

/** Resolves once `condition` holds, looked at between turns of the event loop. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

afterEach(async () => {
  for (const one of clients.splice(0)) one.close();
  await test.stop();
});

describe('hostile bytes', () => {
  beforeEach(() => start());

  const header = (key: number, version: number, body: Uint8Array = Buffer.alloc(0)) => {
    const fixed = Buffer.alloc(10);
    fixed.writeInt16BE(key, 0);
    fixed.writeInt16BE(version, 2);
    fixed.writeInt16BE(-1, 8);
    const bytes = Buffer.concat([fixed, body]);
    return Buffer.concat([int32(bytes.length), bytes]);
  };

  it.each([
    ['a negative size', int32(-1)],
    ['size zero', int32(0)],
    ['two gigabytes', int32(0x7fffffff)],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['TLS', Buffer.from('16030100f1010000ed0303', 'hex')],
    ['a frame shorter than a header', Buffer.concat([int32(3), Buffer.alloc(3)])],
    ['an unknown API', header(9_999, 0)],
    ['an API that is not served', header(26, 0)],
    ['an unknown version', header(3, 99)],
    ['a cut body', header(3, 8, int32(5))],
    ['an array of 2^31-1 elements', header(3, 8, int32(0x7fffffff))],
    ['a produce cut within its records', header(0, 8, Buffer.from('ffffffff', 'hex'))],
  ])('%s closes the connection and nothing else', async (_name, bytes) => {
    const bystander = await client();
    const hostile = await client();
    hostile.socket.write(bytes);
    await hostile.closed;
    expect((await versions(bystander)).errorCode).toBe(0);
  });

  it('answers what came before the garbage', async () => {
    const raw = await client();
    raw.send(apiVersionsApi, 0, { clientSoftwareName: '', clientSoftwareVersion: '' });
    raw.socket.write(int32(-5));
    expect((await raw.receive(apiVersionsApi, 0)).response.errorCode).toBe(0);
    await raw.closed;
  });

  it('answers ApiVersions of an unknown version in version 0', async () => {
    const raw = await client();
    const body = Buffer.from('00', 'hex');
    const bytes = header(18, 77, Buffer.concat([body, body]));
    bytes.writeInt32BE(-5, 8);
    raw.socket.write(bytes);
    const { correlationId, response } = await raw.receive(apiVersionsApi, 0);
    expect([correlationId, response.errorCode]).toEqual([-5, 35]);
    expect((await versions(raw)).errorCode).toBe(0);
  });

  it('takes a request byte by byte', async () => {
    const raw = await client();
    for (const byte of header(18, 0)) raw.socket.write(Buffer.from([byte]));
    expect((await raw.receive(apiVersionsApi, 0)).response.errorCode).toBe(0);
  });
});

describe('order of replies', () => {
  beforeEach(() => start());

  it('is that of the requests, also behind a long poll', async () => {
    const raw = await client();
    const ids = [raw.send(fetchApi, 11, fetchRequest([{ topic: 't' }], { maxWaitMs: 20_000 }))];
    const plain = { clientSoftwareName: '', clientSoftwareVersion: '' };
    for (let i = 0; i < 5; i += 1) ids.push(raw.send(apiVersionsApi, 0, plain));
    await until(() => test.broker.services.fetchWaits.waiting === 1);
    const other = await client();
    await other.call(produceApi, 8, produceRequest('t', batchOf(['x'])));
    const got = [(await raw.receive(fetchApi, 11)).correlationId];
    for (let i = 0; i < 5; i += 1) got.push((await raw.receive(apiVersionsApi, 0)).correlationId);
    expect(got).toEqual(ids);
  });

  it('holds for pipelined produces, whose offsets ascend', async () => {
    const raw = await client();
    for (let i = 0; i < 200; i += 1) {
      raw.send(produceApi, 8, produceRequest('t', batchOf([`${i}`])));
    }
    const offsets: number[] = [];
    for (let i = 0; i < 200; i += 1) {
      const { correlationId, response } = await raw.receive(produceApi, 8);
      expect(correlationId).toBe(i + 1);
      offsets.push(response.responses[0]!.partitionResponses[0]!.baseOffset);
    }
    expect(offsets).toEqual(Array.from({ length: 200 }, (_, i) => i));
  });

  it('a blocked long poll does not delay another connection', async () => {
    const blocked = await client();
    blocked.send(fetchApi, 11, fetchRequest([{ topic: 't' }], { maxWaitMs: 60_000 }));
    await until(() => test.broker.services.fetchWaits.waiting === 1);
    const other = await client();
    expect((await versions(other)).errorCode).toBe(0);
  });

  it('a client that goes frees its long poll', async () => {
    const raw = await client();
    raw.send(fetchApi, 11, fetchRequest([{ topic: 't' }], { maxWaitMs: 60_000 }));
    await until(() => test.broker.services.fetchWaits.waiting === 1);
    raw.close();
    await until(() => test.broker.services.fetchWaits.waiting === 0);
    await until(() => test.log.unreleased === 0);
  });
});

/** The next reply to a Produce, while `commit` goes on. */
async function answered(from: RawClient, commit: () => void) {
  let done = false;
  const reply = from.receive(produceApi, 8).finally(() => {
    done = true;
  });
  while (!done) {
    commit();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return reply;
}

describe('back-pressure', () => {
  it('congestion mutes connections that produce, not the others', async () => {
    await start();
    const producer = await client();
    const other = await client();
    test.log.congested = true;
    producer.send(produceApi, 8, produceRequest('t', batchOf(['x'])));
    expect((await versions(other)).errorCode).toBe(0);
    const id = test.directory.byName('t')!.partitions[0]!;
    expect(test.log.watermarks(id)!.highWatermark).toBe(0);
    test.log.relieve();
    const { response } = await producer.receive(produceApi, 8);
    expect(response.responses[0]!.partitionResponses[0]!.errorCode).toBe(0);
  });

  it('a connection that has its share of the bytes in flight waits; one that has none does not', async () => {
    const gauges = new Map<string, () => number>();
    await start({
      metrics: { ...noMetrics, observeGauge: (name, _help, read) => gauges.set(name, read) },
    });
    const waiting = () => gauges.get('floe_broker_produce_waiting')!();
    const [greedy, other] = [await client(), await client()];
    test.log.autoCommit = false;
    test.log.roomBytes = 1_000;
    const send = (from: RawClient, bytes: number) =>
      from.send(produceApi, 8, produceRequest('t', batchOf(['x'.repeat(bytes)])));
    // Both share an address, so they are one user, whose share is eight times what is free: one may have half of it.
    for (let n = 0; n < 4; n += 1) send(greedy, 2_000);
    await until(() => waiting() === 1);
    expect(test.log.pending).toBe(2);
    expect((await versions(await client())).errorCode).toBe(0);
    send(other, 100);
    await until(() => test.log.pending === 3);
    expect(waiting()).toBe(1);
    // It was sent after four of the other's, and goes before two of them.
    const { response } = await answered(other, () => test.log.commit());
    expect(response.responses[0]!.partitionResponses[0]!.baseOffset).toBe(2);
    for (let n = 0; n < 4; n += 1) await answered(greedy, () => test.log.commit());
  });

  it('a client that does not read gets no more read for it', async () => {
    await start();
    const raw = await client();
    for (let i = 0; i < 20; i += 1) {
      await raw.call(produceApi, 8, produceRequest('t', batchOf(['x'.repeat(900_000)])));
    }
    raw.socket.pause();
    const reads = test.log.reads;
    const asked = 6;
    for (let i = 0; i < asked; i += 1) {
      raw.send(fetchApi, 11, fetchRequest([{ topic: 't', maxBytes: 2 ** 25 }]));
    }
    await until(() => test.log.unreleased === 2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    // 18 MB a reply: two are made, the others wait for the reader.
    expect(test.log.reads - reads).toBe(2);
    raw.socket.resume();
    for (let i = 0; i < asked; i += 1) await raw.receive(fetchApi, 11);
    await until(() => test.log.unreleased === 0);
  });

  it('large requests past queued.max.request.bytes take turns, small ones go on', async () => {
    await start({ set: { 'queued.max.request.bytes': '1048576' } });
    const many = await Promise.all(Array.from({ length: 8 }, () => client()));
    const request = Buffer.concat(
      encodeRequest({
        api: produceApi,
        version: 8,
        correlationId: 1,
        clientId: null,
        request: produceRequest('t', batchOf(['x'.repeat(700_000)])),
      }),
    );
    for (const one of many) one.socket.write(request.subarray(0, 400_000));
    const small = await client();
    for (let i = 0; i < 20; i += 1) expect((await versions(small)).errorCode).toBe(0);
    for (const one of many) one.socket.write(request.subarray(400_000));
    for (const one of many) {
      const { response } = await one.receive(produceApi, 8);
      expect(response.responses[0]!.partitionResponses[0]!.errorCode).toBe(0);
    }
  });

  it('more requests than a connection may have are all answered', async () => {
    await start({ set: { 'connection.max.requests': '3' } });
    const raw = await client();
    test.log.autoCommit = false;
    for (let i = 0; i < 20; i += 1) raw.send(produceApi, 8, produceRequest('t', batchOf(['x'])));
    const id = test.directory.byName('t')!.partitions[0]!;
    const answered: number[] = [];
    while (answered.length < 20) {
      await new Promise((resolve) => setImmediate(resolve));
      const before = test.log.watermarks(id)!.highWatermark;
      test.log.commit();
      const committed = test.log.watermarks(id)!.highWatermark - before;
      expect(committed).toBeLessThanOrEqual(3);
      for (let i = 0; i < committed; i += 1) {
        answered.push((await raw.receive(produceApi, 8)).correlationId);
      }
    }
    expect(answered).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  });

  it('a broker that works on as many requests as it may wakes every connection again', async () => {
    await start({ set: { 'queued.max.requests': '2' } });
    const many = await Promise.all(Array.from({ length: 12 }, () => client()));
    const replies = many.map((one) => one.call(produceApi, 8, produceRequest('t', batchOf(['x']))));
    for (const reply of await Promise.all(replies)) {
      expect(reply.responses[0]!.partitionResponses[0]!.errorCode).toBe(0);
    }
  });
});

describe('limits and timeouts', () => {
  it('closes connections above max.connections at once', async () => {
    await start({ set: { 'max.connections': '1' } });
    const first = await client();
    expect((await versions(first)).errorCode).toBe(0);
    await (await client()).closed;
    expect((await versions(first)).errorCode).toBe(0);
  });

  /** Wall time for everything but what the broker's timers see. */
  async function startWithManualClock(set: Record<string, string>): Promise<ManualClock> {
    const clock = new ManualClock();
    await start({ clock, set });
    return clock;
  }

  it('closes an idle connection', async () => {
    const clock = await startWithManualClock({ 'connections.max.idle.ms': '5000' });
    const raw = await client();
    await versions(raw);
    await clock.advance(4_000);
    expect(raw.isClosed).toBe(false);
    await clock.advance(3_000);
    await raw.closed;
  });

  it('closes a connection whose request stops half way, not one that waits for its reply', async () => {
    const clock = await startWithManualClock({ 'connection.progress.timeout.ms': '2000' });
    const stuck = await client();
    stuck.socket.write(Buffer.concat([int32(100), Buffer.alloc(10)]));
    const polling = await client();
    polling.send(fetchApi, 11, fetchRequest([{ topic: 't' }], { maxWaitMs: 60_000 }));
    await until(() => test.broker.services.fetchWaits.waiting === 1);
    await clock.advance(1_000);
    // The half frame has arrived by now: its progress counts from here.
    await versions(await client());
    await clock.advance(4_000);
    await stuck.closed;
    expect(polling.isClosed).toBe(false);
    await clock.advance(60_000);
    expect((await polling.receive(fetchApi, 11)).response.errorCode).toBe(0);
  });

  it('answers REQUEST_TIMED_OUT when the log is late, and keeps what was written', async () => {
    const clock = await startWithManualClock({});
    test.log.autoCommit = false;
    const raw = await client();
    raw.send(produceApi, 8, produceRequest('t', batchOf(['x']), { timeoutMs: 1_500 }));
    await until(() => clock.nextTimer() !== undefined);
    const other = await client();
    await versions(other);
    await clock.advance(1_500);
    const { response } = await raw.receive(produceApi, 8);
    expect(response.responses[0]!.partitionResponses[0]!.errorCode).toBe(7);
    test.log.commit();
    const id = test.directory.byName('t')!.partitions[0]!;
    expect(test.log.watermarks(id)!.highWatermark).toBe(1);
  });
});

describe('stop', () => {
  beforeEach(() => start());

  it('answers what is under way, long polls at once, then closes', async () => {
    const producer = await client();
    const poller = await client();
    const idle = await client();
    await versions(idle);
    test.log.autoCommit = false;
    producer.send(produceApi, 8, produceRequest('t', batchOf(['x'])));
    poller.send(fetchApi, 11, fetchRequest([{ topic: 't' }], { maxWaitMs: 60_000 }));
    await until(() => test.broker.services.fetchWaits.waiting === 1);
    const stopped = test.broker.stop();
    expect((await poller.receive(fetchApi, 11)).response.errorCode).toBe(0);
    await idle.closed;
    test.log.commit();
    const { response } = await producer.receive(produceApi, 8);
    expect(response.responses[0]!.partitionResponses[0]!.errorCode).toBe(0);
    await stopped;
    await Promise.all([producer.closed, poller.closed]);
    await expect(RawClient.connect(test.port)).rejects.toThrow(/ECONNREFUSED/);
  });

  it('is harmless twice', async () => {
    await Promise.all([test.broker.stop(), test.broker.stop()]);
  });
});

describe('a TLS listener', () => {
  it('speaks the same protocol, also in frames cut anywhere', async () => {
    const files = testFiles();
    const secure = await startSecureBroker({
      listeners: 'PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0',
      'ssl.keystore.location': files.write('keystore.pem', TEST_KEYSTORE),
    });
    files.remove();
    test = secure;
    const port = secure.portOf('SSL');
    await createTopic();
    const socket = connectTls({
      host: '127.0.0.1',
      port,
      ca: TEST_CERTIFICATE,
      servername: 'localhost',
    });
    await new Promise((resolve) => socket.once('secureConnect', resolve));
    const raw = RawClient.over(socket);
    clients.push(raw);
    expect((await versions(raw)).errorCode).toBe(0);
    const values = ['x'.repeat(300_000), 'y'];
    for (const value of values) {
      const reply = await raw.call(produceApi, 8, produceRequest('t', batchOf([value])));
      expect(reply.responses[0]!.partitionResponses[0]!.errorCode).toBe(0);
    }
    const reply = await raw.call(fetchApi, 11, fetchRequest([{ topic: 't' }]));
    const records = readRecords(reply.responses[0]!.partitions[0]!.records!);
    expect(records.map(({ value }) => value!.toString())).toEqual(values);
  });

  it('counts connections from before their handshake, and forgets those that never make one', async () => {
    const files = testFiles();
    const secure = await startSecureBroker(
      {
        listeners: 'PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0',
        'ssl.keystore.location': files.write('keystore.pem', TEST_KEYSTORE),
      },
      { set: { 'max.connections.per.ip': '2' } },
    );
    files.remove();
    test = secure;
    const port = secure.portOf('SSL');
    const silent = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    const third = connect(port, '127.0.0.1');
    await once(third, 'close');
    for (const socket of silent) socket.destroy();
    const handshake = async () => {
      const options = { host: '127.0.0.1', port, ca: TEST_CERTIFICATE, servername: 'localhost' };
      const socket = connectTls(options);
      return new Promise<boolean>((resolve) => {
        socket.once('secureConnect', () => resolve(true)).once('error', () => resolve(false));
        socket.once('close', () => resolve(false));
      }).finally(() => socket.destroy());
    };
    while (!(await handshake()));
    // A peer that speaks no TLS is told so and forgotten as well.
    const garbage = connect(port, '127.0.0.1');
    garbage.on('error', () => {});
    garbage.write('GET / HTTP/1.1\r\n\r\n');
    await once(garbage.resume(), 'close');
    while (!(await handshake()));
  });

  it('stops with handshakes under way', async () => {
    const files = testFiles();
    const secure = await startSecureBroker({
      listeners: 'SSL://127.0.0.1:0',
      'ssl.keystore.location': files.write('keystore.pem', TEST_KEYSTORE),
    });
    files.remove();
    test = secure;
    const socket = connect(secure.portOf('SSL'), '127.0.0.1');
    const closed = once(socket, 'close');
    await once(socket, 'connect');
    socket.on('error', () => {});
    await test.broker.stop();
    await closed;
  });
});

describe('the slow-request log', () => {
  it('names stages of a request that took long, not of a long poll', async () => {
    const warnings: object[] = [];
    const logger = { ...silentLogger, warn: (facts: object) => warnings.push(facts) };
    const clock = new ManualClock();
    await start({ clock, logger, set: { 'request.slow.ms': '100' } });
    test.log.autoCommit = false;
    const raw = await client();
    raw.send(produceApi, 8, produceRequest('t', batchOf(['x'])));
    const poller = await client();
    poller.send(fetchApi, 11, fetchRequest([{ topic: 't', partition: 1 }], { maxWaitMs: 200 }));
    await until(() => test.broker.services.fetchWaits.waiting === 1);
    await versions(await client());
    await clock.advance(250);
    test.log.commit();
    await raw.receive(produceApi, 8);
    await poller.receive(fetchApi, 11);
    await until(() => warnings.length > 0);
    expect(warnings).toMatchObject([{ api: 'Produce', client: 'raw', queueMs: 0, handleMs: 250 }]);
  });
});

describe('start', () => {
  it('refuses a taken port and leaves nothing behind', async () => {
    await start();
    const listeners = [
      { name: 'A', host: '127.0.0.1', port: 0 },
      { name: 'B', host: '127.0.0.1', port: test.port },
    ];
    await expect(startTestBroker({ listeners })).rejects.toMatchObject({ code: 'conflict' });
  });

  it('tells clients the advertised address', async () => {
    await start({
      set: { 'advertised.listeners': 'PLAINTEXT://kafka.example:1234' },
      clock: systemClock,
    });
    const raw = await client();
    const reply = await raw.call(metadataApi, 1, {
      topics: [],
      includeTopicAuthorizedOperations: false,
      includeClusterAuthorizedOperations: false,
    });
    expect(reply.brokers).toMatchObject([{ host: 'kafka.example', port: 1234 }]);
  });
});

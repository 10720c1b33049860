// A connection without sockets, fed with bytes that no client would send: it answers or ends, and never throws.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ALL_APIS } from '../protocol/apis.ts';
import { encodeRequest } from '../protocol/envelope.ts';
import { fetchApi } from '../protocol/messages/01-fetch.ts';
import { openListener } from './auth/listener-auth.ts';
import { Session } from './auth/session.ts';
import { BufferPool } from './buffer-pool.ts';
import { Connection, type ConnectionShared } from './connection.ts';
import { CopyBudget } from './copy-budget.ts';
import { LANDING_BYTES } from './frame-receiver.ts';
import { Gate } from './gate.ts';
import { RequestStats } from './request-stats.ts';
import { Shares } from './shares.ts';
import { startTestBroker, type TestBroker } from './testing/harness.ts';
import { fetchRequest } from './testing/requests.ts';
import type { Wire } from './wire.ts';

let test: TestBroker;
let shared: ConnectionShared;
const crashes: Error[] = [];

beforeAll(async () => {
  test = await startTestBroker();
  const { services } = test.broker;
  shared = {
    services,
    copies: new CopyBudget(),
    gate: new Gate({ maxRequests: 100, maxBytes: 2 ** 26 }),
    inFlight: new Shares({ free: () => services.log.room, factor: () => 8 }),
    pool: new BufferPool(),
    landing: Buffer.alloc(LANDING_BYTES),
    stats: new RequestStats(services.metrics, services.clock),
    crash: (error) => crashes.push(error),
  };
});

afterAll(() => test.stop());

class NullWire implements Wire {
  readonly remoteAddress = 'fuzz';
  ended = false;
  write(_pieces: readonly Uint8Array[], done: (sent: boolean) => void): void {
    done(true);
  }
  pause(): void {}
  resume(): void {}
  end(): void {
    this.ended = true;
  }
  destroy(): void {
    this.ended = true;
  }
}

function connect(wire: Wire): Connection {
  const session = new Session({
    ...shared.services,
    listener: openListener('PLAINTEXT'),
    host: 'fuzz',
    subject: undefined,
  });
  return new Connection({ shared, wire, id: 1, listener: 'PLAINTEXT', session, onClosed() {} });
}

function frame({
  apiKey,
  version,
  body,
}: {
  apiKey: number;
  version: number;
  body: Uint8Array;
}): Buffer {
  const bytes = Buffer.alloc(14 + body.length);
  bytes.writeInt32BE(10 + body.length, 0);
  bytes.writeInt16BE(apiKey, 4);
  bytes.writeInt16BE(version, 6);
  bytes.writeInt32BE(1, 8);
  bytes.writeInt16BE(-1, 12);
  bytes.set(body, 14);
  return bytes;
}

it('survives requests with random bodies', async () => {
  // Small numbers are likely lengths and counts.
  const byte = fc.oneof(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 255 }));
  const request = fc.record({
    apiKey: fc.constantFrom(...ALL_APIS.map(({ key }) => key)),
    version: fc.integer({ min: 0, max: 14 }),
    body: fc.array(byte, { maxLength: 120 }).map((bytes) => Uint8Array.from(bytes)),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 4 }), async (requests) => {
      const connection = connect(new NullWire());
      for (const one of requests) {
        const bytes = frame(one);
        connection.received(bytes, bytes.length);
      }
      connection.closed();
      await new Promise((resolve) => setImmediate(resolve));
      expect(crashes).toEqual([]);
    }),
    { numRuns: 400, seed: 11 },
  );
  expect([shared.gate.produce.inside, shared.gate.others.inside]).toEqual([0, 0]);
  expect(shared.gate.bytes).toBe(0);
  expect(test.log.unreleased).toBe(0);
});

/** A socket whose peer is gone and that hasn't said so. */
class GoneWire extends NullWire {
  writes = 0;
  override write(_pieces: readonly Uint8Array[], done: (sent: boolean) => void): void {
    this.writes += 1;
    process.nextTick(done, false);
  }
}

it('starts nothing more once a reply could not be sent', async () => {
  const topicId = '00000000-0000-4000-8000-000000000001';
  await test.directory.create({ topicId, name: 'gone', partitionCount: 1, config: {}, nowMs: 1 });
  const wire = new GoneWire();
  const connection = connect(wire);
  const from = fetchRequest([{ topic: 'gone' }]);
  for (let correlationId = 0; correlationId < 20; correlationId += 1) {
    const pieces = encodeRequest({
      api: fetchApi,
      version: 11,
      correlationId,
      clientId: null,
      request: from,
    });
    const bytes = Buffer.concat(pieces);
    connection.received(bytes, bytes.length);
  }
  await new Promise((resolve) => setImmediate(resolve));
  expect(wire.writes).toBe(1);
  connection.closed();
  expect([shared.gate.others.inside, shared.gate.bytes, test.log.unreleased]).toEqual([0, 0, 0]);
});

// A connection without sockets, fed with bytes that no client would send: it answers or ends, and never throws.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ALL_APIS } from '../protocol/apis.ts';
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
  write(_pieces: readonly Uint8Array[], done: () => void): void {
    done();
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
      const wire = new NullWire();
      const session = new Session({
        ...shared.services,
        listener: openListener('PLAINTEXT'),
        host: 'fuzz',
        subject: undefined,
      });
      const options = { shared, wire, id: 1, listener: 'PLAINTEXT', session, onClosed() {} };
      const connection = new Connection(options);
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
  expect(shared.gate.requests).toBe(0);
  expect(shared.gate.bytes).toBe(0);
  expect(test.log.unreleased).toBe(0);
});

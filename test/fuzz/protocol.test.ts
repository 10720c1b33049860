// Hostile bytes against the wire layer: every message in every version, valid, mutated and random; frames; batches.
// Whatever comes, the answer is a value or a FloeError, soon, without large allocations. FUZZ_RUNS makes it longer.
import { describe, expect, it } from 'vitest';
import { isFloeError } from '../../src/base/error.ts';
import { type Prng, seededPrng } from '../../src/base/prng.ts';
import type { Schema } from '../../src/protocol/fields.ts';
import {
  ALL_APIS,
  buildBatch,
  decodeAssignment,
  decodeSubscription,
  FrameDecoder,
  metadataApi,
  openRequest,
  Reader,
  readRecords,
  Writer,
} from '../../src/protocol/index.ts';
import { readBatchHeader, writeBatchHeader } from '../../src/protocol/record-batch.ts';
import { type BatchRules, validateBatches } from '../../src/protocol/validate.ts';
import { inVersions } from '../../src/protocol/versions.ts';
import { absent, randomMessage } from './random-message.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 10);

interface Case {
  readonly name: string;
  readonly version: number;
  readonly flexible: boolean;
  readonly schema: Schema;
  random(prng: Prng): Record<string, unknown>;
  encode(value: Record<string, unknown>): Buffer;
  decode(bytes: Uint8Array): unknown;
}

const CASES: Case[] = ALL_APIS.flatMap((api) =>
  [api.request, api.response].flatMap((message) => {
    const cases: Case[] = [];
    for (let version = api.minVersion; version <= api.maxVersion; version += 1) {
      cases.push({
        name: `${message.name} v${version}`,
        version,
        schema: message.schema,
        flexible: inVersions(message.flexibleVersions, version),
        random: (prng) => randomMessage(message.schema, version, prng),
        encode(value) {
          const writer = new Writer();
          message.encode(writer, value, version);
          return Buffer.concat(writer.finish());
        },
        decode: (bytes) => message.decode(new Reader(bytes), version),
      });
    }
    return cases;
  }),
);

/** Runs `work`; only our own errors about bad bytes may come out. */
function survives(work: () => unknown): void {
  try {
    work();
  } catch (caught) {
    if (!isFloeError(caught, 'invalid', 'exhausted', 'corrupt', 'unsupported')) throw caught;
  }
}

function mutated(bytes: Buffer, prng: Prng): Buffer {
  const copy = Buffer.from(bytes);
  switch (prng.int(4)) {
    case 0:
      return copy.subarray(0, prng.int(copy.length + 1));
    case 1: {
      // A length or count that lies.
      const at = prng.int(Math.max(copy.length - 4, 1));
      return Buffer.concat([
        copy.subarray(0, at),
        Buffer.from('7fffffff', 'hex'),
        copy.subarray(at + 4),
      ]);
    }
    case 2: {
      const at = prng.int(copy.length + 1);
      return Buffer.concat([copy.subarray(0, at), prng.bytes(1 + prng.int(8)), copy.subarray(at)]);
    }
    default:
      for (let i = 0; i < 1 + prng.int(5); i += 1) {
        if (copy.length > 0) copy[prng.int(copy.length)] = prng.int(256);
      }
      return copy;
  }
}

describe('every message in every version', () => {
  it('comes back as it was written', () => {
    const prng = seededPrng(11);
    for (const { name, random, encode, decode } of CASES) {
      for (let run = 0; run < 3; run += 1) {
        const value = random(prng);
        expect(decode(encode(value)), name).toEqual(value);
      }
    }
  });

  it('survives mutation, truncation and lies', () => {
    const prng = seededPrng(12);
    for (const { random, encode, decode } of CASES) {
      const bytes = encode(random(prng));
      for (let run = 0; run < RUNS; run += 1) survives(() => decode(mutated(bytes, prng)));
    }
  });

  it('survives random bytes', () => {
    const prng = seededPrng(13);
    for (const { decode } of CASES) {
      for (let run = 0; run < RUNS; run += 1) survives(() => decode(prng.bytes(prng.int(200))));
    }
  });

  it('skips tagged fields that it does not know', () => {
    const prng = seededPrng(14);
    for (const { name, flexible, schema, random, encode, decode } of CASES) {
      if (!flexible) continue;
      const value = random(prng);
      for (const [field, definition] of Object.entries(schema)) {
        if (definition.tagNumber !== undefined) value[field] = absent(definition);
      }
      // Without tagged fields of its own the message ends with their count, 0.
      const bytes = encode(value);
      expect(bytes.at(-1)).toBe(0);
      const stranger = Buffer.from([1, 99, 3, 1, 2, 3]);
      expect(decode(Buffer.concat([bytes.subarray(0, -1), stranger])), name).toEqual(value);
    }
  });
});

describe('counts that lie', () => {
  it('allocate nothing', () => {
    const body = Buffer.from('7fffffff0000', 'hex');
    expect(() => metadataApi.request.decode(new Reader(body), 8)).toThrow(
      'MetadataRequest v8: malformed message: array of 2147483647 elements in 2 bytes',
    );
  });

  it('of elements that are there are bounded too', () => {
    // Two million empty topic names: true, and no honest client's.
    const body = Buffer.alloc(4 + 2 * 2_000_000);
    body.writeInt32BE(2_000_000);
    expect(() => metadataApi.request.decode(new Reader(body), 1)).toThrow(
      expect.objectContaining({ code: 'exhausted' }),
    );
  });

  it('of tagged fields are bounded', () => {
    const body = Buffer.from([1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    expect(() => metadataApi.request.decode(new Reader(body), 12)).toThrow('tagged fields');
  });
});

describe('streams', () => {
  it('of random bytes give frames or an error', () => {
    const prng = seededPrng(15);
    for (let run = 0; run < RUNS * 50; run += 1) {
      const decoder = new FrameDecoder(100_000);
      survives(() => {
        for (let chunk = 0; chunk < 5; chunk += 1) {
          const bytes = Buffer.from(prng.bytes(1 + prng.int(30)));
          if (prng.int(2) === 0) bytes.fill(0, 0, Math.min(3, bytes.length));
          for (const frame of decoder.push(bytes)) survives(() => openRequest(frame));
        }
      });
    }
  });

  it('of request headers with any key and version open or fail', () => {
    const prng = seededPrng(16);
    for (let run = 0; run < RUNS * 100; run += 1) {
      const frame = Buffer.from(prng.bytes(8 + prng.int(60)));
      frame.writeInt16BE(prng.int(95), 0);
      frame.writeInt16BE(prng.int(20), 2);
      survives(() => {
        const { api, version, readable, body } = openRequest(frame);
        if (readable) api.request.decode(body, version);
      });
    }
  });

  it('of subscriptions and assignments decode or fail', () => {
    const prng = seededPrng(17);
    for (let run = 0; run < RUNS * 100; run += 1) {
      const bytes = prng.bytes(prng.int(40));
      if (bytes.length > 1) bytes.set([0, prng.int(5)]);
      survives(() => decodeSubscription(bytes));
      survives(() => decodeAssignment(bytes));
    }
  });
});

const RULES: BatchRules = {
  maxMessageBytes: 100_000,
  maxDecompressedBytes: 100_000,
  keysRequired: false,
  timestampType: 'CreateTime',
  nowMs: 1_700_000_000_000,
  timestampBeforeMaxMs: 2 ** 63,
  timestampAfterMaxMs: 2 ** 63,
  produceVersion: 9,
};

describe.each([0, 1, 2, 3, 4])('record batches of compression %i', (compression) => {
  const batch = buildBatch(
    Array.from({ length: 20 }, (_, i) => ({
      key: `key-${i}`,
      value: 'value '.repeat(i),
      timestamp: RULES.nowMs + i,
      headers: [['h', i % 2 === 0 ? null : 'x']] as const,
    })),
    { compression },
  );

  it('are checked without harm, and what passes can be read', () => {
    const prng = seededPrng(20 + compression);
    let passed = 0;
    for (let run = 0; run < RUNS * 40; run += 1) {
      const bad = mutated(batch, prng);
      // With a right length and CRC the lie reaches the deepest checks.
      if (bad.length > 61 && prng.int(4) !== 0) writeBatchHeader(bad, readBatchHeader(bad));
      survives(() => readRecords(Buffer.from(bad), { maxDecompressedBytes: 100_000 }));
      const check = validateBatches(bad, RULES);
      if (check.errorCode !== 0) continue;
      passed += 1;
      expect(readRecords(bad)).toHaveLength(readBatchHeader(bad).recordCount);
    }
    expect(passed).toBeGreaterThan(0);
  });
});

import { gzipSync } from 'node:zlib';
import { compressFrameSync, decompressFrameSync } from 'lz4-napi';
import { compressSync, uncompressSync } from 'snappy';
import { describe, expect, it } from 'vitest';
import { isFloeError } from '../base/error.ts';
import { seededPrng } from '../base/prng.ts';
import { xxhash32 } from './codecs/xxhash32.ts';
import { COMPRESSION_NAMES, Compression, compress, decompress } from './codecs.ts';

const LIMIT = 10_000_000;
const prng = seededPrng(7);
const SAMPLES: Record<string, Buffer> = {
  empty: Buffer.alloc(0),
  'one byte': Buffer.from('x'),
  text: Buffer.from('to be or not to be, '.repeat(500)),
  zeros: Buffer.alloc(300_000),
  noise: Buffer.from(prng.bytes(100_000)),
  // Short matches at many distances.
  words: Buffer.from(
    Array.from({ length: 20_000 }, () => ['floe', 'ice', 'berg', '{"a":'][prng.int(4)]).join(''),
  ),
};

function shared(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}

describe.each(COMPRESSION_NAMES.map((name, type) => [name, type] as const))('%s', (_name, type) => {
  it.each(Object.entries(SAMPLES))('gives back %s', (_sample, bytes) => {
    const packed = compress(type, bytes);
    expect(Buffer.compare(decompress(type, packed, LIMIT), bytes)).toBe(0);
    expect(Buffer.compare(decompress(type, shared(packed), LIMIT), bytes)).toBe(0);
  });

  it('unfolds up to its bound and not beyond', () => {
    if (type === Compression.NONE) return;
    for (const bytes of [SAMPLES['zeros']!, SAMPLES['noise']!, SAMPLES['words']!]) {
      const packed = compress(type, bytes);
      expect(decompress(type, packed, bytes.length)).toHaveLength(bytes.length);
      expect(() => decompress(type, packed, bytes.length - 1)).toThrow(
        expect.objectContaining({ code: 'exhausted' }),
      );
    }
  });

  it('refuses damaged bytes with an error of ours, or returns something in bounds', () => {
    if (type === Compression.NONE) return;
    const packed = compress(type, SAMPLES['words']!.subarray(0, 5_000));
    for (let round = 0; round < 500; round += 1) {
      const damaged = Buffer.from(packed).subarray(0, 1 + prng.int(packed.length));
      for (let i = 0; i < 1 + prng.int(4); i += 1)
        damaged[prng.int(damaged.length)] = prng.int(256);
      try {
        expect(decompress(type, damaged, 20_000).length).toBeLessThanOrEqual(20_000);
      } catch (caught) {
        expect(isFloeError(caught, 'corrupt', 'exhausted')).toBe(true);
      }
    }
  });
});

describe('foreign writers', () => {
  const text = SAMPLES['text']!;

  it('raw snappy, as librdkafka writes it', () => {
    expect(decompress(Compression.SNAPPY, compressSync(text), LIMIT)).toEqual(text);
  });

  it('xerial snappy has its header and blocks of 32 KiB, each raw snappy', () => {
    const packed = Buffer.from(compress(Compression.SNAPPY, SAMPLES['words']!));
    expect(packed.subarray(0, 16).toString('hex')).toBe('82534e41505059000000000100000001');
    const first = packed.subarray(20, 20 + packed.readInt32BE(16));
    expect(uncompressSync(first)).toEqual(SAMPLES['words']!.subarray(0, 32_768));
  });

  it('lz4 frames with checksums, and ours in another reader', () => {
    for (const bytes of Object.values(SAMPLES)) {
      const checked = compressFrameSync(bytes, { blockChecksums: true, contentChecksum: true });
      expect(Buffer.compare(decompress(Compression.LZ4, checked, LIMIT), bytes)).toBe(0);
      const ours = Buffer.from(compress(Compression.LZ4, bytes));
      expect(Buffer.compare(decompressFrameSync(ours), bytes)).toBe(0);
    }
  });

  it('lz4 frames that would harm other readers are refused', () => {
    const frame = Buffer.from(compressFrameSync(text, { blockChecksums: true }));
    const header = Buffer.from(frame);
    header[6]! ^= 1;
    expect(() => decompress(Compression.LZ4, header, LIMIT)).toThrow('header fails its check');
    const block = Buffer.from(frame);
    block[12]! ^= 1;
    expect(() => decompress(Compression.LZ4, block, LIMIT)).toThrow('block fails its check');
  });

  it('gzip of several members', () => {
    const packed = Buffer.concat([gzipSync(text), gzipSync(text)]);
    expect(decompress(Compression.GZIP, packed, LIMIT)).toEqual(Buffer.concat([text, text]));
  });
});

it('xxHash32 gives the published values', () => {
  const hash = (text: string) => xxhash32(Buffer.from(text), 0, text.length);
  expect(hash('')).toBe(0x02cc5d05);
  expect(hash('Nobody inspects the spammish repetition')).toBe(0xe2293b2f);
});

it('an unknown codec is unsupported', () => {
  expect(() => decompress(5, Buffer.alloc(1), 1)).toThrow('compression type 5');
});

// Primitives and the rules of definitions, on small messages of our own.
import { describe, expect, it } from 'vitest';
import { varintBytes, writeVarint } from './bytes.ts';
import { message } from './compile.ts';
import { ErrorCode, kafkaError } from './errors.ts';
import { array, int32, int64, string, struct, uuid } from './fields.ts';
import { Reader } from './reader.ts';
import { buildBatch } from './record-builder.ts';
import { RecordCursor } from './record-cursor.ts';
import { inVersions, parseVersions } from './versions.ts';
import { MAX_STRING_BYTES, Writer } from './writer.ts';

function written(write: (writer: Writer) => void): Buffer {
  const writer = new Writer();
  write(writer);
  const { length } = writer;
  const bytes = Buffer.concat(writer.finish());
  expect(bytes).toHaveLength(length);
  return bytes;
}

describe('an int64', () => {
  it.each([0, 1, -1, 2 ** 31, 2 ** 32, -(2 ** 32) - 1, 2 ** 53, -(2 ** 53), 2 ** 62])(
    '%d comes back exactly',
    (value) => {
      const bytes = written((writer) => writer.int64(value));
      expect(bytes.readBigInt64BE()).toBe(BigInt(value));
      expect(new Reader(bytes).int64()).toBe(value);
    },
  );

  it('is clamped at both ends, rounded beyond 2^53, and whole', () => {
    const bytes = (value: number) => written((writer) => writer.int64(value)).readBigInt64BE();
    expect(bytes(Number.POSITIVE_INFINITY)).toBe(2n ** 63n - 1n);
    expect(bytes(2 ** 63)).toBe(2n ** 63n - 1n);
    expect(bytes(Number.NEGATIVE_INFINITY)).toBe(-(2n ** 63n));
    expect(bytes(-1.5)).toBe(-1n);
    const longest = Buffer.from('7fffffffffffffff', 'hex');
    expect(new Reader(longest).int64()).toBe(2 ** 63);
    expect(() => bytes(Number.NaN)).toThrow('assertion');
  });
});

describe('a varint', () => {
  it('of any zigzag value takes as many bytes as told and is read back', () => {
    for (const value of [0, -1, 1, 63, -64, 64, 2 ** 20, -(2 ** 31), 2 ** 31 - 1, 2 ** 45]) {
      const bytes = Buffer.alloc(10);
      expect(writeVarint(bytes, 0, value)).toBe(varintBytes(value));
    }
    const batch = buildBatch([{ timestamp: 0 }, { timestamp: 2 ** 45 }]);
    const cursor = new RecordCursor();
    cursor.open(batch);
    while (cursor.next());
    expect(cursor.timestamp).toBe(2 ** 45);
  });

  it('unsigned has at most 32 bits', () => {
    for (const value of [0, 127, 128, 2 ** 31, 2 ** 32 - 1]) {
      expect(new Reader(written((writer) => writer.uvarint(value))).uvarint()).toBe(value);
    }
    expect(() => new Reader(Buffer.alloc(9, 0xff)).uvarint()).toThrow('longer than 5 bytes');
  });
});

describe('a string', () => {
  it('that is too long is cut between characters', () => {
    for (const text of ['x'.repeat(40_000), 'é'.repeat(20_000), '🧊'.repeat(10_000)]) {
      const bytes = written((writer) => writer.string(text, true));
      const read = new Reader(bytes).string(true)!;
      expect(Buffer.byteLength(read)).toBeGreaterThan(MAX_STRING_BYTES - 4);
      expect(text.startsWith(read)).toBe(true);
    }
  });

  it('that claims too much is refused', () => {
    expect(() => new Reader(Buffer.from([0, 9, 1])).string(false)).toThrow('9 bytes wanted');
    expect(() => new Reader(Buffer.from([0xff, 0xfe])).string(false)).toThrow('-2 bytes');
    const long = Buffer.alloc(100_000, 1);
    long.set([0xa0, 0x8d, 0x06]);
    expect(() => new Reader(long).string(true)).toThrow('limit 32767');
  });
});

it('a writer grows, keeps order and passes large pieces through', () => {
  const large = Buffer.alloc(10_000, 7);
  const bytes = written((writer) => {
    for (let i = 0; i < 1_000; i += 1) writer.int32(i);
    writer.raw(large);
    for (let i = 0; i < 40_000; i += 1) writer.int32(i);
  });
  expect(bytes.readInt32BE(999 * 4)).toBe(999);
  expect(bytes.subarray(4_000, 14_000)).toEqual(large);
  expect(bytes.readInt32BE(bytes.length - 4)).toBe(39_999);
});

describe('a definition', () => {
  const sample = message({
    name: 'Sample',
    versions: '0-2',
    flexible: '2+',
    schema: {
      name: string.nullable('1+'),
      size: int64.since(1).default(-1),
      old: int32.in('0-1'),
      items: array({ id: uuid, extra: string.nullable().tag(5).default(null).since(2) }),
      more: struct({ level: int32.default(3) })
        .since(2)
        .tag(0),
    },
  });
  const id = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
  const value = { name: 'n', old: 4, items: [{ id }] };
  const encode = (version: number, what: Parameters<typeof sample.encode>[1] = value) =>
    written((writer) => sample.encode(writer, what, version));

  it('fills in what a version lacks', () => {
    const items = [{ id, extra: null }];
    const more = { level: 3 };
    const back = (version: number) => sample.decode(new Reader(encode(version)), version);
    expect(back(0)).toEqual({ name: 'n', size: -1, old: 4, items, more });
    expect(back(2)).toEqual({ name: 'n', size: -1, old: 0, items, more });
  });

  it('leaves out tagged fields at their defaults, writes the others by tag', () => {
    expect(encode(2).at(-1)).toBe(0);
    expect(encode(2, { ...value, more: { level: 3 } })).toEqual(encode(2));
    const tail = encode(2, { ...value, more: { level: 9 } }).subarray(-8);
    expect(tail).toEqual(Buffer.from([1, 0, 5, 0, 0, 0, 9, 0]));
  });

  it('writes null as the empty value where a version has no null, and refuses it there when read', () => {
    expect(encode(0, { ...value, name: null }).readInt16BE()).toBe(0);
    expect(encode(1, { ...value, name: null }).readInt16BE()).toBe(-1);
    expect(() => sample.decode(new Reader(Buffer.from([0xff, 0xff])), 0)).toThrow(
      'Sample v0: malformed message: null in a string',
    );
  });

  it('has no other versions', () => {
    expect(() => encode(3)).toThrow('Sample has no version 3');
  });
});

it('version ranges', () => {
  expect(parseVersions('3')).toEqual({ min: 3, max: 3 });
  expect(inVersions(parseVersions('2+'), 99)).toBe(true);
  expect(inVersions(parseVersions('none'), 1)).toBe(false);
  expect(() => parseVersions('3-')).toThrow(RangeError);
});

it('error codes', () => {
  expect(ErrorCode.UNKNOWN_SERVER_ERROR).toBe(-1);
  expect(kafkaError(10)).toMatchObject({ name: 'MESSAGE_TOO_LARGE', retriable: false });
  expect(kafkaError(7_000).name).toBe('UNKNOWN_SERVER_ERROR');
});

import { describe, expect, it } from 'vitest';
import { seededPrng } from '../base/prng.ts';
import { FrameDecoder } from './frame-decoder.ts';

function framed(body: Uint8Array): Buffer {
  const size = Buffer.alloc(4);
  size.writeInt32BE(body.length);
  return Buffer.concat([size, body]);
}

describe('FrameDecoder', () => {
  it('finds the same frames however the stream is cut', () => {
    const prng = seededPrng(1);
    const bodies = [0, 1, 3, 100, 5_000, 70_000, 0, 12].map((n) => Buffer.from(prng.bytes(n)));
    const stream = Buffer.concat(bodies.map(framed));
    for (const most of [1, 2, 7, 1_000, 65_536, stream.length]) {
      const decoder = new FrameDecoder();
      const found: Buffer[] = [];
      for (let at = 0; at < stream.length; ) {
        const end = Math.min(stream.length, at + 1 + prng.int(most));
        found.push(...decoder.push(stream.subarray(at, end)));
        at = end;
      }
      expect(found.map((frame) => frame.toString('hex'))).toEqual(
        bodies.map((body) => body.toString('hex')),
      );
      expect(decoder.pendingBytes).toBe(0);
    }
  });

  it('hands out a frame inside one chunk as a view, also when its size came before', () => {
    const whole = framed(Buffer.from('abc'));
    const [frame] = new FrameDecoder().push(whole);
    expect(frame!.buffer).toBe(whole.buffer);
    const decoder = new FrameDecoder();
    expect(decoder.push(Buffer.from([0, 0, 0, 3]))).toEqual([]);
    const chunk = Buffer.from('abc');
    expect(decoder.push(chunk)[0]!.buffer).toBe(chunk.buffer);
  });

  it('tells how much of a frame has come', () => {
    const decoder = new FrameDecoder();
    decoder.push(Buffer.from([0, 0]));
    expect([decoder.pendingBytes, decoder.announcedBytes]).toEqual([2, 0]);
    decoder.push(Buffer.from([0, 9, 1, 2]));
    expect([decoder.pendingBytes, decoder.announcedBytes]).toEqual([6, 9]);
  });

  it('refuses negative and oversized frames, naming size and limit', () => {
    const negative = () => new FrameDecoder().push(Buffer.from([0xff, 0xff, 0xff, 0xff]));
    expect(negative).toThrow(expect.objectContaining({ code: 'invalid' }));
    expect(negative).toThrow('-1');
    const http = () => new FrameDecoder(1_000).push(Buffer.from('GET / HTTP/1.1'));
    expect(http).toThrow(expect.objectContaining({ code: 'exhausted' }));
    expect(http).toThrow('frame of 1195725856 bytes, the limit is 1000 (socket.request.max.bytes)');
  });

  it('does not allocate what is only announced', () => {
    const decoder = new FrameDecoder(1 << 30);
    const before = process.memoryUsage().arrayBuffers;
    decoder.push(Buffer.from([0x3f, 0xff, 0xff, 0xff, 1]));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 << 20);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BufferPool } from './buffer-pool.ts';
import { FrameReceiver, SMALL_FRAME_BYTES } from './frame-receiver.ts';
import { Gate } from './gate.ts';

interface Receiving {
  readonly receiver: FrameReceiver;
  readonly frames: Buffer[];
  readonly gate: Gate;
  noRoom: number;
}

function receiving(options: { maxFrameBytes?: number; maxBytes?: number } = {}): Receiving {
  const gate = new Gate({ maxRequests: 10, maxBytes: options.maxBytes ?? 2 ** 30 });
  const state: Omit<Receiving, 'receiver'> = { frames: [], gate, noRoom: 0 };
  const receiver = new FrameReceiver({
    landing: Buffer.alloc(1_000),
    pool: new BufferPool(),
    gate,
    share: gate.share('u'),
    maxFrameBytes: options.maxFrameBytes ?? 2 ** 24,
    onFrame: (frame) => state.frames.push(Buffer.from(frame)),
    onNoRoom: () => {
      state.noRoom += 1;
    },
  });
  return Object.assign(state, { receiver });
}

function framed(body: Buffer): Buffer {
  const frame = Buffer.alloc(body.length + 4);
  frame.writeInt32BE(body.length, 0);
  body.copy(frame, 4);
  return frame;
}

/** Feeds `bytes` the way a socket does: into the target, as much as fits and `sizes` say. */
function feedTargets(receiver: FrameReceiver, bytes: Buffer, sizes: readonly number[]): void {
  for (let at = 0, n = 0; at < bytes.length; n += 1) {
    const target = receiver.target();
    const length = Math.min(target.length, sizes[n % sizes.length]!, bytes.length - at);
    bytes.copy(target, 0, at, at + length);
    receiver.received(target, length);
    at += length;
  }
}

describe('FrameReceiver', () => {
  it('finds the same frames however the bytes arrive', () => {
    const body = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 300 }),
      fc.integer({ min: 1, max: 90_000 }).map((n) => new Uint8Array(n).fill(n)),
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 9 });
    fc.assert(
      fc.property(fc.array(body, { maxLength: 6 }), sizes, fc.boolean(), (bodies, cuts, chunks) => {
        const { receiver, frames, gate } = receiving();
        const bytes = Buffer.concat(bodies.map((b) => framed(Buffer.from(b))));
        if (chunks) {
          for (let at = 0, n = 0; at < bytes.length; n += 1) {
            const chunk = bytes.subarray(at, at + cuts[n % cuts.length]!);
            receiver.received(Buffer.from(chunk), chunk.length);
            at += chunk.length;
          }
        } else feedTargets(receiver, bytes, cuts);
        expect(frames.map((f) => f.toString('hex'))).toEqual(
          bodies.map((b) => Buffer.from(b).toString('hex')),
        );
        expect(receiver.partial).toBe(false);
        expect(gate.bytes).toBe(0);
      }),
      { numRuns: 60, seed: 7 },
    );
  });

  it.each([[0], [-1], [2 ** 31 - 1], [1_001]])('refuses a frame of %i bytes', (size) => {
    const { receiver } = receiving({ maxFrameBytes: 1_000 });
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(size, 0);
    expect(() => receiver.received(bytes, 4)).toThrow(/socket\.request\.max\.bytes/);
  });

  it('allocates by what arrived, not by what is claimed', () => {
    const { receiver, gate } = receiving({ maxFrameBytes: 2 ** 27 });
    const bytes = Buffer.alloc(10);
    bytes.writeInt32BE(2 ** 27, 0);
    receiver.received(bytes, 10);
    expect(gate.bytes).toBeLessThanOrEqual(2 ** 20);
    receiver.close();
    expect(gate.bytes).toBe(0);
  });

  it('asks for a pause when the gate is full, and still takes what arrives', () => {
    const state = receiving({ maxBytes: 1 });
    const other = state.gate.share('u');
    state.gate.take(2, other);
    expect(state.gate.admits(other)).toBe(true);
    const body = Buffer.alloc(SMALL_FRAME_BYTES + 1, 9);
    feedTargets(state.receiver, framed(body), [1_000]);
    expect(state.noRoom).toBeGreaterThan(0);
    expect(state.frames[0]).toEqual(body);
  });

  it('needs no room for a small frame', () => {
    const state = receiving({ maxBytes: 1 });
    feedTargets(state.receiver, framed(Buffer.alloc(SMALL_FRAME_BYTES, 1)), [700]);
    expect(state.noRoom).toBe(0);
    expect(state.frames).toHaveLength(1);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Outbox } from './outbox.ts';
import type { Wire } from './wire.ts';

class FakeWire implements Wire {
  readonly remoteAddress = 'test';
  readonly written: Buffer[] = [];
  #pending: (() => void)[] = [];

  write(pieces: readonly Uint8Array[], done: () => void): void {
    expect(this.#pending).toHaveLength(0);
    this.written.push(Buffer.concat(pieces));
    this.#pending.push(done);
  }

  /** The kernel took the write under way. */
  take(): boolean {
    const done = this.#pending.shift();
    done?.();
    return done !== undefined;
  }

  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {}
}

describe('Outbox', () => {
  it('sends every byte once, in order, and finishes each reply after its last', () => {
    const piece = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.constant(3_000_000));
    const replies = fc.array(fc.array(piece, { minLength: 1, maxLength: 4 }), { maxLength: 8 });
    fc.assert(
      fc.property(replies, (sizes) => {
        const wire = new FakeWire();
        const outbox = new Outbox(wire, () => {});
        const done: number[] = [];
        const all: Buffer[] = [];
        for (const [n, pieces] of sizes.entries()) {
          const buffers = pieces.map((size, i) => Buffer.alloc(size, n * 10 + i));
          all.push(...buffers);
          const bytes = buffers.reduce((sum, b) => sum + b.length, 0);
          outbox.push({ pieces: buffers, bytes, done: () => done.push(n) });
        }
        while (wire.take());
        expect(Buffer.concat(wire.written).equals(Buffer.concat(all))).toBe(true);
        expect(done).toEqual(sizes.map((_, n) => n));
        expect(outbox.empty).toBe(true);
      }),
      { numRuns: 25, seed: 3 },
    );
  });

  it('shows progress within a large reply', () => {
    const wire = new FakeWire();
    const progress: number[] = [];
    const outbox = new Outbox(wire, (bytes) => progress.push(bytes));
    outbox.push({ pieces: [Buffer.alloc(5_000_000)], bytes: 5_000_000, done() {} });
    wire.take();
    expect(progress).toEqual([1_048_576]);
    expect(outbox.empty).toBe(false);
  });

  it('finishes what is queued when the wire goes, and what is being written when the socket lets go', () => {
    const wire = new FakeWire();
    const outbox = new Outbox(wire, () => {});
    const done: string[] = [];
    outbox.push({ pieces: [Buffer.alloc(9)], bytes: 9, done: () => done.push('writing') });
    outbox.push({ pieces: [Buffer.alloc(9)], bytes: 9, done: () => done.push('queued') });
    outbox.close();
    expect(done).toEqual([]);
    wire.take();
    expect(done).toEqual(['writing', 'queued']);
    outbox.push({ pieces: [Buffer.alloc(9)], bytes: 9, done: () => done.push('late') });
    expect(done).toEqual(['writing', 'queued', 'late']);
  });
});

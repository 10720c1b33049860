import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CopyBudget } from './copy-budget.ts';
import { Outbox } from './outbox.ts';
import type { Wire } from './wire.ts';

class FakeWire implements Wire {
  readonly remoteAddress = 'test';
  readonly written: Buffer[] = [];
  #pending: ((sent: boolean) => void)[] = [];

  write(pieces: readonly Uint8Array[], done: (sent: boolean) => void): void {
    expect(this.#pending).toHaveLength(0);
    this.written.push(Buffer.concat(pieces));
    this.#pending.push(done);
  }

  /** The kernel took the write under way. */
  take(sent = true): boolean {
    const done = this.#pending.shift();
    done?.(sent);
    return done !== undefined;
  }

  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {}
}

const noEvents = { onProgress() {}, onGone() {} };

describe('Outbox', () => {
  it('sends every byte once, in order, and finishes each reply after its last', () => {
    const piece = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.constant(3_000_000));
    const replies = fc.array(fc.array(piece, { minLength: 1, maxLength: 4 }), { maxLength: 8 });
    fc.assert(
      fc.property(replies, (sizes) => {
        const wire = new FakeWire();
        const outbox = new Outbox(wire, noEvents);
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
    const outbox = new Outbox(wire, { ...noEvents, onProgress: (bytes) => progress.push(bytes) });
    outbox.push({ pieces: [Buffer.alloc(5_000_000)], bytes: 5_000_000, done() {} });
    wire.take();
    expect(progress).toEqual([1_048_576]);
    expect(outbox.empty).toBe(false);
  });

  it('finishes what is queued when the wire goes, and what is being written when the socket lets go', () => {
    const wire = new FakeWire();
    const outbox = new Outbox(wire, noEvents);
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

  it('says once that the wire is gone, and writes nothing to it any more', () => {
    const wire = new FakeWire();
    const said: string[] = [];
    const events = { onProgress: () => said.push('progress'), onGone: () => said.push('gone') };
    const outbox = new Outbox(wire, events);
    for (const name of ['first', 'second'])
      outbox.push({
        pieces: [Buffer.alloc(2_000_000)],
        bytes: 2_000_000,
        done: () => said.push(name),
      });
    wire.take(false);
    expect(said).toEqual(['gone']);
    outbox.close();
    expect(said).toEqual(['gone', 'first', 'second']);
    expect(wire.take()).toBe(false);
  });

  it('copies what a slow peer leaves waiting, which then pins only what is being written', () => {
    const wire = new FakeWire();
    const copies = new CopyBudget(4_000_000);
    const outbox = new Outbox(wire, noEvents, copies);
    const unpinned: string[] = [];
    const done: string[] = [];
    const push = (name: string, bytes: number) => {
      const piece = Buffer.alloc(bytes, name);
      const pieces = [piece.subarray(0, 10), piece.subarray(10)];
      outbox.push({
        pieces,
        bytes,
        unpin: () => unpinned.push(name),
        done: () => done.push(name),
      });
      return piece;
    };
    const first = push('a', 2_000_000);
    const second = push('b', 500_000);
    outbox.copyWaiting();
    // The write under way still points into the first.
    expect(unpinned).toEqual(['b']);
    expect(copies.bytes).toBe(2_500_000 - 10);
    for (const piece of [first, second]) piece.fill('?');
    // Slow until it has caught up: the next one is copied as it comes, the one after finds no room.
    const third = push('c', 1_000_000);
    third.fill('?');
    push('d', 1_000_000);
    expect(unpinned).toEqual(['b', 'c']);
    wire.take();
    expect(unpinned).toEqual(['b', 'c', 'a']);
    while (wire.take());
    expect(done).toEqual(['a', 'b', 'c', 'd']);
    expect(copies.bytes).toBe(0);
    const sent = Buffer.concat(wire.written).toString();
    const whole = ['a', 'b', 'c', 'd'].map((name, n) =>
      name.repeat([2_000_000, 500_000, 1_000_000, 1_000_000][n]!),
    );
    // What was written before the copy was in the wire's hands already.
    expect(sent === whole.join('')).toBe(true);
    expect(unpinned).toEqual(['b', 'c', 'a']);
  });
});

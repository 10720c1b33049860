// When each group wants to be looked at next: one timer and one heap for all, whatever their number.
// A deadline that moves away costs nothing until the old one is due, so heartbeats need not tell.
import type { Clock, Timer } from '../../base/clock.ts';

interface Due {
  readonly key: string;
  readonly atMs: number;
}

export class Deadlines {
  readonly #clock: Clock;
  readonly #now: () => number;
  readonly #fire: (key: string) => void;
  /** The latest wish of each key. */
  readonly #wanted = new Map<string, number>();
  /** Least first; holds a key's entry at or before its wish, and stale ones. */
  readonly #heap: Due[] = [];
  #timer: Timer | undefined;
  #timerMs = Infinity;

  /** `now` tells the time that deadlines are in, milliseconds; `fire` is called once for each that is due. */
  constructor(clock: Clock, now: () => number, fire: (key: string) => void) {
    this.#clock = clock;
    this.#now = now;
    this.#fire = fire;
  }

  get size(): number {
    return this.#wanted.size;
  }

  /** Replaces the key's deadline; Infinity for none. */
  set(key: string, atMs: number): void {
    const known = this.#wanted.get(key);
    if (atMs === Infinity) {
      this.#wanted.delete(key);
      return;
    }
    this.#wanted.set(key, atMs);
    // The entry that is in the heap already comes first, and sees then that it is early.
    if (known !== undefined && known <= atMs) return;
    this.#push({ key, atMs });
    this.#arm();
  }

  stop(): void {
    this.#wanted.clear();
    this.#heap.length = 0;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    const next = this.#heap[0]?.atMs ?? Infinity;
    if (next === Infinity || (this.#timer !== undefined && this.#timerMs <= next)) return;
    this.#timer?.cancel();
    this.#timerMs = next;
    this.#timer = this.#clock.setTimer(Math.max(0, next - this.#now()), () => this.#due());
  }

  #due(): void {
    this.#timer = undefined;
    const now = this.#now();
    const due = new Set<string>();
    while (this.#heap.length > 0 && this.#heap[0]!.atMs <= now) {
      const { key } = this.#pop();
      const wanted = this.#wanted.get(key);
      if (wanted === undefined || due.has(key)) continue;
      if (wanted > now) this.#push({ key, atMs: wanted });
      else {
        this.#wanted.delete(key);
        due.add(key);
      }
    }
    for (const key of due) this.#fire(key);
    this.#arm();
  }

  #push(entry: Due): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.atMs <= entry.atMs) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): Due {
    const heap = this.#heap;
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]!.atMs < heap[child]!.atMs) child += 1;
      if (heap[child]!.atMs >= last.atMs) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

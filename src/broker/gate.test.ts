import { describe, expect, it } from 'vitest';
import { Gate } from './gate.ts';

describe('Gate', () => {
  it('lets in as many requests as it may, and calls back in order', () => {
    const gate = new Gate({ maxRequests: 2, maxBytes: 100 });
    gate.enter();
    gate.enter();
    expect(gate.open).toBe(false);
    const called: string[] = [];
    const enter = (name: string) => () => {
      called.push(name);
      gate.enter();
    };
    gate.whenOpen(enter('a'));
    gate.whenOpen(enter('b'));
    gate.leave();
    expect(called).toEqual(['a']);
    gate.leave();
    expect(called).toEqual(['a', 'b']);
  });

  it('goes on to the next when the first has nothing to do', () => {
    const gate = new Gate({ maxRequests: 1, maxBytes: 100 });
    gate.enter();
    const called: string[] = [];
    gate.whenOpen(() => called.push('idle'));
    gate.whenOpen(() => called.push('eager'));
    gate.leave();
    expect(called).toEqual(['idle', 'eager']);
  });

  it('forgets who is gone', () => {
    const gate = new Gate({ maxRequests: 1, maxBytes: 100 });
    const called: string[] = [];
    const action = () => called.push('gone');
    gate.enter();
    gate.whenOpen(action);
    gate.forget(action);
    gate.leave();
    expect(called).toEqual([]);
  });

  it('lets one large request at a time go on past the limit of bytes', () => {
    const gate = new Gate({ maxRequests: 9, maxBytes: 100 });
    const [first, second] = [gate.share('u'), gate.share('u')];
    gate.take(100, first);
    expect(gate.admits(first)).toBe(true);
    gate.take(50, first);
    expect([gate.admits(second), gate.admits(first), gate.admits(second)]).toEqual([
      true,
      false,
      true,
    ]);
    const woken: string[] = [];
    gate.whenRoom(() => woken.push('first'));
    gate.release(10, first);
    expect(woken).toEqual([]);
    gate.release(20, first);
    expect(woken).toEqual([]);
    gate.release(0, second, true);
    expect(woken).toEqual(['first']);
    expect(gate.admits(first)).toBe(true);
  });

  it('keeps room for others: what one user has received goes on one request at a time', () => {
    const gate = new Gate({ maxRequests: 9, maxBytes: 900, factor: () => 2 });
    const [greedy, more, other] = [gate.share('u'), gate.share('u'), gate.share('v')];
    gate.take(300, greedy);
    expect(gate.admits(greedy)).toBe(true);
    gate.take(320, greedy);
    expect([gate.admits(greedy), gate.admits(more), gate.admits(other)]).toEqual([
      true,
      false,
      true,
    ]);
    gate.release(620, greedy, true);
    expect(gate.admits(more)).toBe(true);
    expect(gate.bytes).toBe(0);
  });
});

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
    const [first, second] = [{}, {}];
    gate.take(100);
    expect(gate.admits(first)).toBe(true);
    gate.take(50);
    expect([gate.admits(second), gate.admits(first), gate.admits(second)]).toEqual([
      true,
      false,
      true,
    ]);
    const woken: string[] = [];
    gate.whenRoom(() => woken.push('first'));
    gate.release(10);
    expect(woken).toEqual([]);
    gate.release(20, second);
    expect(woken).toEqual(['first']);
    expect(gate.admits(first)).toBe(true);
  });
});

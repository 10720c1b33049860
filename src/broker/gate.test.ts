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
    gate.whenRoom(enter('a'));
    gate.whenRoom(enter('b'));
    gate.leave();
    expect(called).toEqual(['a']);
    gate.leave();
    expect(called).toEqual(['a', 'b']);
  });

  it('goes on to the next when the first has nothing to do', () => {
    const gate = new Gate({ maxRequests: 1, maxBytes: 100 });
    gate.enter();
    const called: string[] = [];
    gate.whenRoom(() => called.push('idle'));
    gate.whenRoom(() => called.push('eager'));
    gate.leave();
    expect(called).toEqual(['idle', 'eager']);
  });

  it('forgets who is gone', () => {
    const gate = new Gate({ maxRequests: 1, maxBytes: 100 });
    const called: string[] = [];
    const action = () => called.push('gone');
    gate.enter();
    gate.whenRoom(action);
    gate.forget(action);
    gate.leave();
    expect(called).toEqual([]);
  });

  it('takes bytes past the limit but says so, and wakes when they are released', () => {
    const gate = new Gate({ maxRequests: 9, maxBytes: 100 });
    expect(gate.take(100)).toBe(true);
    expect(gate.take(50)).toBe(false);
    let woken = false;
    gate.whenRoom(() => {
      woken = true;
    });
    gate.release(40);
    expect(woken).toBe(false);
    gate.release(10);
    expect(woken).toBe(true);
  });
});

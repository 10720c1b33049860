import { describe, expect, it } from 'vitest';
import { Gate, Turnstile } from './gate.ts';

describe('Turnstile', () => {
  it('lets in as many requests as it may, and calls back in order', () => {
    const turnstile = new Turnstile(2);
    turnstile.enter();
    turnstile.enter();
    expect(turnstile.open).toBe(false);
    const called: string[] = [];
    const enter = (name: string) => () => {
      called.push(name);
      turnstile.enter();
    };
    turnstile.whenOpen(enter('a'));
    turnstile.whenOpen(enter('b'));
    turnstile.leave();
    expect(called).toEqual(['a']);
    turnstile.leave();
    expect(called).toEqual(['a', 'b']);
  });

  it('goes on to the next when the first has nothing to do', () => {
    const turnstile = new Turnstile(1);
    turnstile.enter();
    const called: string[] = [];
    turnstile.whenOpen(() => called.push('idle'));
    turnstile.whenOpen(() => called.push('eager'));
    turnstile.leave();
    expect(called).toEqual(['idle', 'eager']);
  });

  it('forgets who is gone', () => {
    const turnstile = new Turnstile(1);
    const called: string[] = [];
    const action = () => called.push('gone');
    turnstile.enter();
    turnstile.whenOpen(action);
    turnstile.forget(action);
    turnstile.leave();
    expect(called).toEqual([]);
  });
});

describe('Gate', () => {
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

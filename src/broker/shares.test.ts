// Shares of bytes: what one may take leaves some for others, who waits is served by what they hold, and nobody waits for
// ever, whoever asks for how much in which order.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Share, Shares } from './shares.ts';

/** A pool of bytes as the log has it: past its limit nothing is free, and that ends by what is given back. */
function pool(limit: number, factor = 8) {
  let used = 0;
  let relieved: (() => void)[] = [];
  const shares = new Shares({
    free: () => limit - used,
    whenFree: (action) => relieved.push(action),
    factor: () => factor,
  });
  const take = (share: Share, bytes: number) => {
    used += bytes;
    shares.take(share, bytes);
  };
  const give = (share: Share, bytes: number) => {
    used -= bytes;
    shares.give(share, bytes);
    if (used < limit) for (const action of relieved.splice(0)) action();
  };
  return { shares, take, give, used: () => used, forget: () => (relieved = []) };
}

describe('Shares', () => {
  it('one client alone gets nearly all, two get half each, and there is room for a third', () => {
    const { shares, take, used } = pool(900);
    const [a, b, c] = [shares.open('a'), shares.open('b'), shares.open('c')];
    const fill = (...all: readonly Share[]) => {
      while (all.some((share) => shares.admits(share)))
        for (const share of all) if (shares.admits(share)) take(share, 1);
    };
    fill(a);
    expect(a.bytes).toBe(720);
    const two = pool(900);
    const [d, e] = [two.shares.open('d'), two.shares.open('e')];
    while (two.shares.admits(d) || two.shares.admits(e))
      for (const share of [d, e]) if (two.shares.admits(share)) two.take(share, 1);
    expect([d.bytes, e.bytes]).toEqual([400, 400]);
    expect(two.shares.admits(two.shares.open('f'))).toBe(true);
    expect(used()).toBe(720);
    expect([b, c].every((share) => shares.admits(share))).toBe(true);
  });

  it('all connections of a user have one share together', () => {
    const { shares, take } = pool(900);
    const mine = [shares.open('a'), shares.open('a'), shares.open('a')];
    for (let round = 0; round < 900; round += 1)
      for (const share of mine) if (shares.admits(share)) take(share, 1);
    expect(mine.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(772);
    expect(shares.largest).toBe(772);
  });

  it('one connection of a user leaves room for another, whatever it asks for', () => {
    const { shares, take } = pool(900);
    const [flood, small] = [shares.open('a'), shares.open('a')];
    while (shares.admits(flood)) take(flood, 1);
    expect(shares.admits(small)).toBe(true);
    // Not only for its first request.
    for (let bytes = 0; bytes < 50; bytes += 1) {
      take(small, 1);
      expect(shares.admits(small)).toBe(true);
    }
  });

  it('serves who holds least: the user, then the connection, then in order of arrival', async () => {
    const { shares, take, give } = pool(100, 0.5);
    const [heavy, idle] = [shares.open('a'), shares.open('a')];
    const [other, last] = [shares.open('b'), shares.open('c')];
    take(heavy, 99);
    take(other, 1);
    const served: string[] = [];
    for (const [name, share] of Object.entries({ heavy, idle, other, last }))
      shares.wait(share, () => served.push(name));
    give(heavy, 98);
    await Promise.resolve();
    expect(served).toEqual(['last', 'idle', 'heavy', 'other']);
  });

  it('forgets users without connections and bytes', () => {
    const { shares, take, give } = pool(100);
    const share = shares.open('a');
    take(share, 5);
    shares.wait(share, () => {});
    shares.close(share);
    expect([shares.users, shares.waiting]).toEqual([1, 0]);
    give(share, 5);
    expect(shares.users).toBe(0);
  });

  it('whoever waits gets its turn, and the limit holds but for one request', async () => {
    const request = fc.record({
      connection: fc.integer({ min: 0, max: 5 }),
      bytes: fc.integer({ min: 1, max: 60 }),
    });
    const runs = fc.array(request, { minLength: 1, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(runs, fc.constantFrom(0.5, 2, 8), async (requests, factor) => {
        const { shares, take, give, used } = pool(100, factor);
        const open = Array.from({ length: 6 }, (_, n) => shares.open(`user ${n % 3}`));
        const queues = open.map((_, n) => requests.filter(({ connection }) => connection === n));
        const underWay: [Share, number][] = [];
        const start = (n: number) => {
          for (;;) {
            const next = queues[n]![0];
            if (next === undefined) return;
            if (!shares.admits(open[n]!)) return void shares.wait(open[n]!, () => start(n));
            queues[n]!.shift();
            take(open[n]!, next.bytes);
            underWay.push([open[n]!, next.bytes]);
            expect(used()).toBeLessThan(100 + 60);
          }
        };
        for (let n = 0; n < 6; n += 1) start(n);
        while (underWay.length > 0) {
          give(...underWay.shift()!);
          await Promise.resolve();
        }
        expect(queues.flat()).toEqual([]);
        expect([used(), shares.waiting]).toEqual([0, 0]);
      }),
      { numRuns: 100, seed: 1 },
    );
  });
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AssertionError } from '../../base/assert.ts';
import type { FlushRow } from '../../metadata/log.ts';
import { CommitOrder } from './commit-order.ts';

const flushId = (n: number): Uint8Array => new Uint8Array(16).fill(n);

const row = (commitNumber: number, id = 200 + (commitNumber % 50)): FlushRow => ({
  commitNumber,
  flushId: flushId(id),
  objectId: 1,
  objectKey: '',
  generation: 0,
  committedMs: 0,
  index: new Uint8Array(0),
});

/** What was applied, by number; own flushes as negative ones, those that failed as `x`. */
function orderOf(applied = 0) {
  const seen: (number | string)[] = [];
  const missing: number[] = [];
  const order = new CommitOrder({
    applied,
    apply: ({ commitNumber }) => void seen.push(commitNumber),
    onMissing: (commitNumber) => void missing.push(commitNumber),
    onLanded: () => {},
  });
  const send = (id: number) => {
    const known = order.sent(flushId(id));
    return (commitNumber?: number) =>
      known(() => void seen.push(commitNumber === undefined ? 'x' : -commitNumber), commitNumber);
  };
  return { order, seen, missing, send };
}

test('commits are applied in the order of their numbers, whatever way they come', () => {
  const { order, seen, missing, send } = orderOf(10);
  const [first, second] = [send(1), send(2)];
  order.take([row(13), row(12)]);
  expect(seen).toEqual([]);
  first(11);
  expect(seen).toEqual([-11, 12, 13]);
  second(16);
  expect(missing).toEqual([15]);
  order.take([row(11), row(14), row(15), row(17)]);
  expect(seen).toEqual([-11, 12, 13, 14, 15, -16, 17]);
  expect(order.applied).toBe(17);
  expect(order.waitingRows).toBe(0);
});

test('a row of a flush of ours waits for its reply, and is not applied twice', () => {
  const { order, seen, send } = orderOf();
  const first = send(1);
  order.take([row(1, 1), row(2)]);
  expect(seen).toEqual([]);
  first(1);
  order.take([row(1, 1), row(2)]);
  expect(seen).toEqual([-1, 2]);
});

test('a flush that failed holds nobody up; its successors wait until that is known', () => {
  const { order, seen, send } = orderOf();
  const [first, second] = [send(1), send(2)];
  second(2);
  order.take([row(1)]);
  // Number 2 is not applied while the flush before it may yet turn out to be what others wait for.
  expect(seen).toEqual([1]);
  first();
  expect(seen).toEqual([1, 'x', -2]);
});

test('whoever waits for a commit has it asked for, and hears when it is applied', async () => {
  const { order, missing } = orderOf();
  let heard = 0;
  const waits = order.whenApplied(2).then(() => {
    heard = order.applied;
  });
  expect(missing).toEqual([2]);
  expect(order.awaited).toBe(true);
  order.take([row(1)]);
  await Promise.resolve();
  expect(heard).toBe(0);
  order.take([row(2), row(3)]);
  await waits;
  expect(heard).toBe(3);
  expect(order.awaited).toBe(false);
  await order.whenApplied(3);
  expect(missing).toEqual([2]);
});

test('L2: a commit that is applied already can’t be the reply to a flush of ours', () => {
  const { order, send } = orderOf();
  const first = send(1);
  order.take([row(1)]);
  expect(() => first(1)).toThrow(AssertionError);
});

test('model: any interleaving applies every number once, in order, own flushes in order of sending', () => {
  fc.assert(
    fc.property(
      // Of each commit: whose it is; 2: a flush of ours that fails comes before it.
      fc.array(fc.constantFrom<'own' | 'other' | 'failed'>('own', 'other', 'failed'), {
        maxLength: 30,
      }),
      fc.array(fc.nat(1000), { minLength: 90, maxLength: 90 }),
      (kinds, chances) => {
        const { order, seen, send } = orderOf();
        const expected: (number | string)[] = [];
        const events: (() => void)[] = [];
        let commitNumber = 0;
        for (const [n, kind] of kinds.entries()) {
          if (kind === 'failed') {
            const failed = send(n);
            events.push(() => failed());
            expected.push('x');
            continue;
          }
          commitNumber += 1;
          const number = commitNumber;
          const id = kind === 'own' ? n : 100 + n;
          if (kind === 'own') {
            const done = send(n);
            events.push(() => done(number));
          }
          // Others' rows come now and then twice; own rows, too.
          events.push(() => order.take([row(number, id)]));
          if (kind === 'other' && n % 3 === 0) events.push(() => order.take([row(number, id)]));
          expected.push(kind === 'own' ? -number : number);
        }
        for (let at = 0; events.length > 0; at += 1)
          events.splice((chances[at % chances.length] ?? 0) % events.length, 1)[0]!();
        const numbers = seen.filter((entry) => entry !== 'x');
        expect(numbers).toEqual(expected.filter((entry) => entry !== 'x'));
        expect(seen.length).toBe(expected.length);
        expect(order.applied).toBe(commitNumber);
      },
    ),
    { numRuns: 300, seed: 7 },
  );
});

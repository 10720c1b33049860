// The assignors against their promises, on random groups: everything is given once, to who may have it; shares are
// even; what need not move doesn't.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AssignedMember, Assignor } from './assigned-member.ts';
import { assignorOf } from './assignors.ts';
import type { Partitions } from './partitions.ts';

/** Topics as arrays of ids that no other topic has. */
function topicsOf(sizes: readonly number[]): Partitions[] {
  let next = 1;
  return sizes.map((size) => Array.from({ length: size }, () => next++));
}

const member = (memberId: string, topics: readonly Partitions[], target: Partitions = []) =>
  ({ memberId, instanceId: null, topics, target }) satisfies AssignedMember;

const sizes = fc.array(fc.nat(12), { minLength: 1, maxLength: 5 });
/** Members that subscribe to some of the topics each, by index. */
const group = sizes.chain((list) =>
  fc.record({
    sizes: fc.constant(list),
    subscriptions: fc.array(fc.subarray([...list.keys()]), { minLength: 1, maxLength: 8 }),
  }),
);

function check(assign: Assignor, members: readonly AssignedMember[]): readonly Partitions[] {
  const shares = assign(members);
  const wanted = new Set(members.flatMap(({ topics }) => topics.flat()));
  expect(shares.flat().sort()).toEqual([...wanted].sort());
  for (const [index, share] of shares.entries()) {
    const allowed = new Set(members[index]!.topics.flat());
    expect(share.every((id) => allowed.has(id))).toBe(true);
  }
  return shares;
}

const settings = { numRuns: 200, seed: 848 };

describe.each(['uniform', 'range'])('%s', (name) => {
  const assign = assignorOf(name);

  test('gives everything once, to those who subscribe, whatever they had', () => {
    fc.assert(
      fc.property(group, fc.nat(7), ({ sizes: list, subscriptions }, shift) => {
        const topics = topicsOf(list);
        const members = subscriptions.map((indexes, index) =>
          member(
            `m${index}`,
            indexes.map((topic) => topics[topic]!),
          ),
        );
        const first = check(assign, members);
        // Some leave, some change their minds, all keep what they had.
        const later = members.slice(Math.min(shift, members.length - 1)).map((each, index) => ({
          ...each,
          topics: members[(index + shift) % members.length]!.topics,
          target: first[members.indexOf(each)]!,
        }));
        check(assign, later);
      }),
      settings,
    );
  });

  test('is done with what it has given', () => {
    fc.assert(
      fc.property(group, ({ sizes: list, subscriptions }) => {
        const topics = topicsOf(list);
        const members = subscriptions.map((indexes, index) =>
          member(
            `m${index}`,
            indexes.map((topic) => topics[topic]!),
          ),
        );
        const first = assign(members);
        const again = assign(members.map((each, index) => ({ ...each, target: first[index]! })));
        expect(again).toEqual(first);
      }),
      settings,
    );
  });
});

describe('uniform', () => {
  const assign = assignorOf('uniform');

  test('counts differ by one at most where all subscribe to the same', () => {
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 9 }), (list, count) => {
        const topics = topicsOf(list);
        const members = Array.from({ length: count }, (_, index) => member(`m${index}`, topics));
        const counts = check(assign, members).map((share) => share.length);
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      }),
      settings,
    );
  });

  test('a newcomer takes its share and nothing else moves; what a leaver had goes to the others', () => {
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 8 }), (list, count) => {
        const topics = topicsOf(list);
        const before = Array.from({ length: count }, (_, index) => member(`m${index}`, topics));
        const had = assign(before);
        const staying = before.map((each, index) => ({ ...each, target: had[index]! }));
        const grown = assign([...staying, member('new', topics)]);
        for (const index of before.keys())
          expect(grown[index]!.every((id) => had[index]!.includes(id))).toBe(true);
        const left = assign(staying.slice(1));
        for (const index of left.keys())
          expect(had[index + 1]!.every((id) => left[index]!.includes(id))).toBe(true);
      }),
      settings,
    );
  });

  test('uneven subscriptions are levelled as far as they allow', () => {
    const [big, small] = topicsOf([6, 2]) as [Partitions, Partitions];
    const shares = assign([
      member('a', [big, small], [...big, ...small]),
      member('b', [big]),
      member('c', [small]),
    ]);
    expect(shares.map((share) => share.length)).toEqual([3, 3, 2]);
  });
});

test('range divides topics of one size alike, the first members having more', () => {
  const [a, b] = topicsOf([5, 5]) as [Partitions, Partitions];
  const members = ['m2', 'm1'].map((id) => member(id, [a, b]));
  const pinned = { ...member('m9', [a, b]), instanceId: 'i' };
  expect(assignorOf('range')([...members, pinned])).toEqual([
    [a[4], b[4]],
    [a[2], a[3], b[2], b[3]],
    [a[0], a[1], b[0], b[1]],
  ]);
});

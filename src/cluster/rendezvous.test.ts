import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Candidate, chooseNode, hashKey, score } from './rendezvous.ts';
import { clusterNode } from './testing/nodes.ts';

const node = (nodeId: number, rack: string | null = null, draining = false): Candidate => ({
  nodeId,
  rack,
  draining,
});

const keys = Array.from({ length: 1_000 }, (_, n) => `p/${n}`);

const fleet = fc
  .uniqueArray(fc.integer({ min: 0, max: 10_000 }), { minLength: 1, maxLength: 12 })
  .chain((ids) =>
    fc
      .array(fc.constantFrom(null, 'a', 'b', 'c'), { minLength: ids.length, maxLength: ids.length })
      .map((racks) => ids.map((id, n) => node(id, racks[n]!))),
  );

test('the choice is the same for ever', () => {
  const nodes = [1, 2, 3, 4, 5].map((id) => node(id));
  expect(hashKey('p/17')).toMatchInlineSnapshot(`
    {
      "high": 680147862,
      "low": 2101240990,
    }
  `);
  expect(score(hashKey('groups/3'), 7)).toMatchInlineSnapshot(`1830163160025944`);
  expect(keys.slice(0, 12).map((key) => chooseNode(key, nodes)!.nodeId)).toMatchInlineSnapshot(`
    [
      3,
      3,
      1,
      5,
      4,
      2,
      3,
      4,
      2,
      3,
      5,
      1,
    ]
  `);
});

test('the order of nodes does not matter', () => {
  fc.assert(
    fc.property(fleet, fc.string(), (nodes, key) => {
      expect(chooseNode(key, nodes.toReversed())).toEqual(chooseNode(key, nodes));
    }),
    { numRuns: 200 },
  );
});

test('when a node goes only its own work moves, when it comes only to it', () => {
  fc.assert(
    fc.property(fleet, fc.nat(), (nodes, pick) => {
      const gone = nodes[pick % nodes.length]!;
      const rest = nodes.filter((other) => other !== gone);
      for (const key of keys.slice(0, 100)) {
        const before = chooseNode(key, nodes)!;
        if (before !== gone) expect(chooseNode(key, rest)).toBe(before);
      }
    }),
    { numRuns: 100 },
  );
});

test('a rack is served by its own nodes while it has any', () => {
  fc.assert(
    fc.property(fleet, fc.constantFrom('a', 'b', 'd'), fc.string(), (nodes, rack, key) => {
      const own = nodes.filter((candidate) => candidate.rack === rack);
      const chosen = chooseNode(key, nodes, rack);
      expect(chosen).toBe(chooseNode(key, own.length > 0 ? own : nodes));
    }),
    { numRuns: 200 },
  );
});

test('who drains is chosen only when nobody else is there', () => {
  const nodes = [node(1, 'a', true), node(2, 'b'), node(3, 'a', true)];
  for (const key of keys) expect(chooseNode(key, nodes, 'a')!.nodeId).toBe(2);
  expect(chooseNode('p/1', [nodes[0]!])).toBe(nodes[0]);
  expect(chooseNode('p/1', [])).toBeUndefined();
});

test.each([
  ['a few nodes', [1, 2, 3]],
  ['many', Array.from({ length: 20 }, (_, n) => n)],
  ['ids far apart', [0, 1_000, 65_536, 2 ** 31 - 1]],
])('work is spread evenly over %s', (_, ids) => {
  const nodes = ids.map((id) => clusterNode(id));
  for (const prefix of ['p/', 'groups/', 'table/00000000-0000-4000-8000-00000000000']) {
    const counts = new Map<number, number>(ids.map((id) => [id, 0]));
    const total = 20_000;
    for (let n = 0; n < total; n += 1) {
      const { nodeId } = chooseNode(`${prefix}${n}`, nodes)!;
      counts.set(nodeId, counts.get(nodeId)! + 1);
    }
    // Chi-squared: about as many as degrees of freedom, here at most five standard deviations more.
    const expected = total / ids.length;
    const chi = [...counts.values()].reduce((sum, n) => sum + (n - expected) ** 2 / expected, 0);
    const freedom = ids.length - 1;
    expect(chi).toBeLessThan(freedom + 5 * Math.sqrt(2 * freedom));
  }
});

test('bits of scores are fair coins', () => {
  for (let bit = 0; bit < 53; bit += 1) {
    let ones = 0;
    for (let n = 0; n < 4_000; n += 1)
      ones += Math.floor(score(hashKey(`p/${n}`), (n * 7) % 5) / 2 ** bit) % 2;
    expect(Math.abs(ones - 2_000)).toBeLessThan(200);
  }
});

import { expect, test } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import type { Challenge, Frame } from './frames.ts';
import { Accepting, Connecting, type Identity } from './handshake.ts';

const prng = seededPrng(7);
const secret = prng.bytes(32);
const sessionOf = (nodeId: number) => `00000000-0000-4000-8000-00000000000${nodeId}`;

const identity = (nodeId: number, changes: Partial<Identity> = {}): Identity => ({
  clusterId: 'cluster',
  secret,
  nodeId,
  session: sessionOf(nodeId),
  level: 1,
  ...changes,
});

/** One node that connects to another, and what each says to the other's words. */
function sides(one: Partial<Identity> = {}, two: Partial<Identity> = {}) {
  const connecting = new Connecting(identity(1, one), { nodeId: 2, session: sessionOf(2) }, prng);
  return { connecting, accepting: new Accepting(identity(2, two), prng) };
}

test('two nodes of a cluster know each other', () => {
  const { connecting, accepting } = sides();
  const challenge = accepting.take(connecting.hello)!;
  expect(accepting.peer).toBeUndefined();
  expect(accepting.take(connecting.take(challenge))).toBeUndefined();
  expect(accepting.peer).toBe(1);
});

test('without the secret neither side is believed', () => {
  const other = { secret: prng.bytes(32) };
  const liar = sides(other);
  expect(() => liar.connecting.take(liar.accepting.take(liar.connecting.hello)!)).toThrow('secret');

  // A connecting side that doesn't check and sends any proof.
  const { accepting, connecting } = sides(other);
  accepting.take(connecting.hello);
  expect(() => accepting.take({ type: 'proof', proof: prng.bytes(32) })).toThrow('secret');
  expect(accepting.peer).toBeUndefined();
});

test.each<[string, Partial<Identity>, string]>([
  ['of another cluster', { clusterId: 'elsewhere' }, 'another cluster'],
  ['that is another node', { nodeId: 3 }, 'another node'],
])('a node %s does not answer', (_, changes, why) => {
  const { connecting, accepting } = sides({}, changes);
  expect(() => accepting.take(connecting.hello)).toThrow(why);
});

test('another life of the right node is known, but not meant', () => {
  const { connecting, accepting } = sides({}, { session: sessionOf(9) });
  const challenge = accepting.take(connecting.hello)!;
  expect(() => connecting.take(challenge)).toThrow('another life');
});

test('what was heard before is of no use, nor is one’s own proof', () => {
  const first = sides();
  const challenge = first.accepting.take(first.connecting.hello) as Challenge;
  const proof = first.connecting.take(challenge);
  const replayed = new Accepting(identity(2), prng);
  replayed.take(first.connecting.hello);
  expect(() => replayed.take(proof)).toThrow('secret');
  const again = sides();
  expect(() => again.connecting.take(challenge)).toThrow('secret');

  const reflected = sides();
  const own = reflected.accepting.take(reflected.connecting.hello) as Challenge;
  expect(() => reflected.accepting.take({ type: 'proof', proof: own.proof })).toThrow('secret');
});

test('nothing is taken out of turn', () => {
  const hint: Frame = { type: 'hint', commit: 1, news: 0 };
  const { connecting, accepting } = sides();
  expect(() => accepting.take(hint)).toThrow('out of turn');
  expect(() => accepting.take({ type: 'proof', proof: prng.bytes(32) })).toThrow('out of turn');
  expect(() => connecting.take(hint)).toThrow('out of turn');
  accepting.take(connecting.hello);
  expect(() => accepting.take(connecting.hello)).toThrow('out of turn');
});

// Rendezvous (highest random weight) hashing: of many nodes, the one that should do the work named by a key.
// Every node that sees the same nodes chooses the same one, and when a node goes only its own work moves.
// The scores are part of what nodes agree on: a changed hash would send everything elsewhere during an upgrade, so it
// stays as it is. Not for: who is alive (view.ts), who is right (leases).

/** Who may be chosen; `draining` ones only when nobody else is there. */
export interface Candidate {
  readonly nodeId: number;
  readonly rack: string | null;
  readonly draining: boolean;
}

/** Two halves of 32 bits, each well mixed. */
export interface Hash64 {
  readonly high: number;
  readonly low: number;
}

/** Spreads every bit over the whole word (the finaliser of MurmurHash3, by Austin Appleby). */
function mix(word: number): number {
  let mixed = word ^ (word >>> 16);
  mixed = Math.imul(mixed, 0x85eb_ca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2_ae35);
  return mixed ^ (mixed >>> 16);
}

/** Of a key's UTF-16 code units: the same in every process, for ever. */
export function hashKey(key: string): Hash64 {
  let high = 0x9e37_79b9;
  let low = 0x2545_f491;
  for (let n = 0; n < key.length; n += 1) {
    const unit = key.charCodeAt(n);
    high = Math.imul(high ^ unit, 0x0100_0193);
    low = Math.imul(low ^ unit, 0x5bd1_e995) ^ (low >>> 15);
  }
  return { high: mix(high ^ mix(low ^ key.length)), low: mix(low ^ Math.imul(high, 0x27d4_eb2f)) };
}

/** 53 bits: how much the node is the key's. Different nodes practically never have the same. */
export function score({ high, low }: Hash64, nodeId: number): number {
  const node = mix(Math.imul(nodeId + 1, 0x9e37_79b1));
  const first = mix(high ^ node);
  const second = mix(low ^ Math.imul(node, 0x1656_67b1) ^ first);
  return (first >>> 0) * 2 ** 21 + (second >>> 11);
}

/**
 * The best of `nodes` for `key`; among those of `rack` where there are any, else among all. Undefined without nodes.
 */
export function chooseNode<N extends Candidate>(
  key: string,
  nodes: readonly N[],
  rack: string | null = null,
): N | undefined {
  const hash = hashKey(key);
  let best: N | undefined;
  let bestClass = -1;
  let bestScore = -1;
  for (const node of nodes) {
    const nodeClass = classOf(node, rack);
    if (nodeClass < bestClass) continue;
    const points = score(hash, node.nodeId);
    const better =
      nodeClass > bestClass ||
      points > bestScore ||
      (points === bestScore && node.nodeId < best!.nodeId);
    if (!better) continue;
    best = node;
    bestClass = nodeClass;
    bestScore = points;
  }
  return best;
}

/** Staying outweighs being near: a node that goes is no help to its zone. */
function classOf({ draining, rack }: Candidate, wanted: string | null): number {
  return (draining ? 0 : 2) + (wanted !== null && rack === wanted ? 1 : 0);
}

// The uniform assignor: counts as equal as subscriptions allow, moving as few partitions as that takes.
// Where all subscribe to the same, counts differ by at most one. Else a partition goes to the least loaded of those who
// may have it, and topics are levelled out in rounds until nothing moves any more or the rounds are used up.
import { type AssignedMember, byIdentity } from './assigned-member.ts';
import { type Partitions, partitionSet } from './partitions.ts';

export function assignUniform(members: readonly AssignedMember[]): readonly Partitions[] {
  if (members.length === 0) return [];
  const order = [...members.keys()].sort((a, b) => byIdentity(members[a]!, members[b]!));
  const shares = sameSubscriptions(members)
    ? shareEqually(members, order)
    : shareByLoad(members, order);
  return shares.map(partitionSet);
}

function sameSubscriptions(members: readonly AssignedMember[]): boolean {
  const topics = new Set(members[0]!.topics);
  return members.every(
    (member) =>
      member.topics.length === topics.size && member.topics.every((topic) => topics.has(topic)),
  );
}

function shareEqually(members: readonly AssignedMember[], order: readonly number[]): number[][] {
  const free = new Set(members[0]!.topics.flat());
  const total = free.size;
  const kept = members.map(({ target }) => target.filter((id) => free.has(id)));
  const quota = Math.floor(total / members.length);
  let larger = total % members.length;
  // Whoever has most keeps most: fewer partitions move.
  const byLoad = [...order].sort((a, b) => kept[b]!.length - kept[a]!.length);
  const room = new Map<number, number>();
  for (const index of byLoad) {
    const size = quota + (larger > 0 ? 1 : 0);
    if (larger > 0) larger -= 1;
    const mine: number[] = [];
    for (const id of kept[index]!) if (mine.length < size && free.delete(id)) mine.push(id);
    kept[index] = mine;
    room.set(index, size - mine.length);
  }
  const rest = [...free].values();
  for (const index of order)
    for (let left = room.get(index)!; left > 0; left -= 1) kept[index]!.push(rest.next().value!);
  return kept;
}

interface Load {
  readonly shares: Set<number>[];
  /** Partition → index of the member that has it. */
  readonly owner: Map<number, number>;
}

function shareByLoad(members: readonly AssignedMember[], order: readonly number[]): number[][] {
  const subscribers = new Map<Partitions, number[]>();
  for (const index of order)
    for (const topic of members[index]!.topics) {
      const list = subscribers.get(topic);
      if (list === undefined) subscribers.set(topic, [index]);
      else list.push(index);
    }
  const load: Load = { shares: members.map(() => new Set()), owner: new Map() };
  for (const index of order) keepTargets(members[index]!, index, load);
  // Topics with most to give a subscriber go first: what is left can even them out.
  const topics = [...subscribers].sort(
    ([a, ofA], [b, ofB]) =>
      b.length / ofB.length - a.length / ofA.length || ofA.length - ofB.length,
  );
  for (const [topic, list] of topics)
    for (const id of topic) if (!load.owner.has(id)) give(load, id, leastLoaded(load, list));
  levelOut(load, topics);
  return load.shares.map((share) => [...share]);
}

function keepTargets({ topics, target }: AssignedMember, index: number, load: Load): void {
  const allowed = new Set(topics.flat());
  for (const id of target) if (allowed.has(id) && !load.owner.has(id)) give(load, id, index);
}

function give({ shares, owner }: Load, id: number, to: number): void {
  const from = owner.get(id);
  if (from !== undefined) shares[from]!.delete(id);
  owner.set(id, to);
  shares[to]!.add(id);
}

function leastLoaded({ shares }: Load, among: readonly number[]): number {
  let best = among[0]!;
  for (const index of among) if (shares[index]!.size < shares[best]!.size) best = index;
  return best;
}

/** Rounds over all topics; each topic's moves make the loads of its subscribers more equal, so it ends by itself. */
const MAX_ROUNDS = 16;

function levelOut(load: Load, topics: readonly (readonly [Partitions, readonly number[]])[]): void {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    let moved = 0;
    for (const [topic, subscribers] of topics) moved += levelTopic(load, topic, subscribers);
    if (moved === 0) return;
  }
}

function levelTopic(load: Load, topic: Partitions, subscribers: readonly number[]): number {
  let moved = 0;
  for (const id of topic) {
    const from = load.owner.get(id)!;
    const to = leastLoaded(load, subscribers);
    if (load.shares[from]!.size - load.shares[to]!.size <= 1) continue;
    give(load, id, to);
    moved += 1;
  }
  return moved;
}

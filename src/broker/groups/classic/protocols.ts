// Which assignment protocol a group uses: what all members support, chosen by vote.
import type { Group, Member, Protocol } from './group.ts';

/** What a vote needs of a group. */
type Voters = { readonly leaderId: string | null } & {
  readonly members: ReadonlyMap<string, Pick<Member, 'protocols'>>;
};

/** True when a member with these protocols may be in the group: same type, one protocol that all support. */
export function supportsProtocols(
  group: Group,
  protocolType: string,
  protocols: readonly Protocol[],
): boolean {
  if (protocolType === '' || protocols.length === 0) return false;
  if (group.members.size === 0) return true;
  const common = commonProtocols(group);
  return protocolType === group.protocolType && protocols.some(({ name }) => common.has(name));
}

/** Each member votes for the first of its protocols that all support; ties go to the leader's order. */
export function selectProtocol(group: Voters): string {
  const candidates = commonProtocols(group);
  const votes = new Map<string, number>();
  const leader = group.members.get(group.leaderId ?? '');
  for (const { name } of leader?.protocols ?? []) if (candidates.has(name)) votes.set(name, 0);
  for (const { protocols } of group.members.values()) {
    const choice = protocols.find(({ name }) => candidates.has(name));
    if (choice !== undefined) votes.set(choice.name, (votes.get(choice.name) ?? 0) + 1);
  }
  let best = '';
  for (const [name, count] of votes) if (best === '' || count > votes.get(best)!) best = name;
  return best;
}

/** The metadata that a member gave for a protocol; empty when it has none. */
export function metadataOf(protocols: readonly Protocol[], name: string | null): Uint8Array {
  return protocols.find((protocol) => protocol.name === name)?.metadata ?? EMPTY;
}

/** Same names in the same order with the same metadata. */
export function sameProtocols(a: readonly Protocol[], b: readonly Protocol[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ name, metadata }, index) => {
      const other = b[index]!;
      return name === other.name && Buffer.compare(metadata, other.metadata) === 0;
    })
  );
}

const EMPTY = new Uint8Array(0);

function commonProtocols(group: Voters): ReadonlySet<string> {
  let common: Set<string> | undefined;
  for (const { protocols } of group.members.values()) {
    const names = new Set(protocols.map(({ name }) => name));
    common = common === undefined ? names : common.intersection(names);
  }
  return common ?? new Set();
}

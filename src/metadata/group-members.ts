// Members of groups as text in a database: JSON with bytes as base64. Written once per rebalance or step of one, so that
// size and speed don't matter. Not for: tables and transactions (sqlite/groups.ts, postgres/groups.ts).
import type { StoredConsumerMember, StoredMember } from './groups.ts';

type ProtocolJson = { readonly name: string; readonly metadata: string };

interface MemberJson extends Omit<StoredMember, 'protocols' | 'assignment'> {
  readonly protocols: readonly ProtocolJson[];
  readonly assignment: string;
}

/** All members of a classic group. */
export function encodeMembers(members: readonly StoredMember[]): string {
  const rows = members.map(
    (member): MemberJson => ({
      ...member,
      protocols: encodeProtocols(member.protocols),
      assignment: base64(member.assignment),
    }),
  );
  return JSON.stringify(rows);
}

export function decodeMembers(text: string): StoredMember[] {
  return (JSON.parse(text) as MemberJson[]).map((member) => ({
    ...member,
    protocols: decodeProtocols(member.protocols),
    assignment: bytes(member.assignment),
  }));
}

interface ConsumerMemberJson extends Omit<StoredConsumerMember, 'classic'> {
  readonly classic: {
    readonly sessionTimeoutMs: number;
    readonly protocols: readonly ProtocolJson[];
  } | null;
}

/** One member of a consumer group. */
export function encodeConsumerMember(member: StoredConsumerMember): string {
  const { classic } = member;
  const side =
    classic === null ? null : { ...classic, protocols: encodeProtocols(classic.protocols) };
  return JSON.stringify({ ...member, classic: side } satisfies ConsumerMemberJson);
}

export function decodeConsumerMember(text: string): StoredConsumerMember {
  const { classic, ...member } = JSON.parse(text) as ConsumerMemberJson;
  const side =
    classic === null ? null : { ...classic, protocols: decodeProtocols(classic.protocols) };
  return { ...member, classic: side };
}

const encodeProtocols = (protocols: StoredMember['protocols']): ProtocolJson[] =>
  protocols.map(({ name, metadata }) => ({ name, metadata: base64(metadata) }));

const decodeProtocols = (protocols: readonly ProtocolJson[]): StoredMember['protocols'] =>
  protocols.map(({ name, metadata }) => ({ name, metadata: bytes(metadata) }));

const base64 = (from: Uint8Array) =>
  Buffer.from(from.buffer, from.byteOffset, from.byteLength).toString('base64');
const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'base64'));

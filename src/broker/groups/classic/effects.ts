// What a group wants done after an event: answers to send, its state to store. Plain data.
import type { Group, Token } from './group.ts';

export interface JoinReply {
  readonly errorCode: number;
  readonly generation: number;
  readonly protocolType: string | null;
  readonly protocol: string | null;
  readonly leaderId: string;
  readonly skipAssignment: boolean;
  readonly memberId: string;
  /** For the leader only. */
  readonly members: readonly {
    readonly memberId: string;
    readonly instanceId: string | null;
    readonly metadata: Uint8Array;
  }[];
}

export interface SyncReply {
  readonly errorCode: number;
  readonly protocolType: string | null;
  readonly protocol: string | null;
  readonly assignment: Uint8Array;
}

/** Why the group is stored, which decides what follows when it is. */
export type PersistReason =
  /** The group became empty; nobody waits. */
  | { readonly kind: 'empty' }
  /** The leader's assignment of this generation; those who sync wait. */
  | { readonly kind: 'assignment'; readonly generation: number }
  /** A static member came back under a new id in a stable group; its join waits. */
  | { readonly kind: 'static'; readonly token: Token; readonly reply: JoinReply };

export type Effect =
  | { readonly kind: 'join-reply'; readonly token: Token; readonly reply: JoinReply }
  | { readonly kind: 'sync-reply'; readonly token: Token; readonly reply: SyncReply }
  /** Heartbeat: one code. */
  | { readonly kind: 'reply'; readonly token: Token; readonly errorCode: number }
  /** LeaveGroup: one code for each member asked for, in order. */
  | { readonly kind: 'leave-reply'; readonly token: Token; readonly errorCodes: readonly number[] }
  /** Store the group as it is now. */
  | { readonly kind: 'persist'; readonly reason: PersistReason };

const NO_ASSIGNMENT = new Uint8Array(0);

export function joinFailed(token: Token, errorCode: number, memberId = ''): Effect {
  const reply = {
    errorCode,
    generation: -1,
    protocolType: null,
    protocol: null,
    leaderId: '',
    skipAssignment: false,
    memberId,
    members: [],
  };
  return { kind: 'join-reply', token, reply };
}

export function syncFailed(token: Token, errorCode: number): Effect {
  const reply = { errorCode, protocolType: null, protocol: null, assignment: NO_ASSIGNMENT };
  return { kind: 'sync-reply', token, reply };
}

export function synced(group: Group, token: Token, assignment: Uint8Array): Effect {
  const { protocolType, protocol } = group;
  return { kind: 'sync-reply', token, reply: { errorCode: 0, protocolType, protocol, assignment } };
}

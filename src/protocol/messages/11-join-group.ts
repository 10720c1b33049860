// JoinGroup (11): enters a classic group and waits for the rebalance. v1 rebalance timeout, v4 a
// first join without id is answered MEMBER_ID_REQUIRED (KIP-394), v5 static members (KIP-345), v6
// flexible, v7 protocol type in the answer, v8 reason (KIP-800), v9 skip-assignment for a static
// leader that came back (KIP-814).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, bytes, int16, int32, string } from '../fields.ts';

export const joinGroupApi = api({
  key: 11,
  name: 'JoinGroup',
  versions: '0-9',
  flexible: '6+',
  request: {
    groupId: string,
    sessionTimeoutMs: int32,
    // v0 has none: the session timeout serves.
    rebalanceTimeoutMs: int32.since(1).default(-1),
    memberId: string,
    groupInstanceId: string.since(5).nullable().default(null),
    protocolType: string,
    protocols: array({
      name: string,
      metadata: bytes,
    }),
    reason: string.since(8).nullable().default(null),
  },
  response: {
    throttleTimeMs: int32.since(2).default(0),
    errorCode: int16,
    generationId: int32.default(-1),
    protocolType: string.since(7).nullable().default(null),
    protocolName: string.nullable('7+'),
    leader: string,
    skipAssignment: bool.since(9).default(false),
    memberId: string,
    // Filled only for the leader.
    members: array({
      memberId: string,
      groupInstanceId: string.since(5).nullable().default(null),
      metadata: bytes,
    }),
  },
});

export interface JoinGroupRequest extends RequestOf<typeof joinGroupApi> {}
export interface JoinGroupResponse extends ResponseOf<typeof joinGroupApi> {}
export type JoinGroupReply = ReplyOf<typeof joinGroupApi>;

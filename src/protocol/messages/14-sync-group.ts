// SyncGroup (14): the leader hands in the assignment, everybody gets a share. v3 static members, v4
// flexible, v5 protocol type and name, so that a stale member notices (KIP-559).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bytes, int16, int32, string } from '../fields.ts';

export const syncGroupApi = api({
  key: 14,
  name: 'SyncGroup',
  versions: '0-5',
  flexible: '4+',
  request: {
    groupId: string,
    generationId: int32,
    memberId: string,
    groupInstanceId: string.since(3).nullable().default(null),
    protocolType: string.since(5).nullable().default(null),
    protocolName: string.since(5).nullable().default(null),
    assignments: array({
      memberId: string,
      assignment: bytes,
    }),
  },
  response: {
    throttleTimeMs: int32.since(1).default(0),
    errorCode: int16,
    protocolType: string.since(5).nullable().default(null),
    protocolName: string.since(5).nullable().default(null),
    assignment: bytes,
  },
});

export interface SyncGroupRequest extends RequestOf<typeof syncGroupApi> {}
export interface SyncGroupResponse extends ResponseOf<typeof syncGroupApi> {}
export type SyncGroupReply = ReplyOf<typeof syncGroupApi>;

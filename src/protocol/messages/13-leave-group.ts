// LeaveGroup (13): members leave at once instead of timing out. v3 many members and static ones, v4
// flexible, v5 reasons (KIP-800).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, string } from '../fields.ts';

export const leaveGroupApi = api({
  key: 13,
  name: 'LeaveGroup',
  versions: '0-5',
  flexible: '4+',
  request: {
    groupId: string,
    memberId: string.in('0-2'),
    members: array({
      memberId: string,
      groupInstanceId: string.nullable().default(null),
      reason: string.since(5).nullable().default(null),
    }).since(3),
  },
  response: {
    throttleTimeMs: int32.since(1).default(0),
    errorCode: int16,
    members: array({
      memberId: string,
      groupInstanceId: string.nullable(),
      errorCode: int16,
    }).since(3),
  },
});

export interface LeaveGroupRequest extends RequestOf<typeof leaveGroupApi> {}
export interface LeaveGroupResponse extends ResponseOf<typeof leaveGroupApi> {}
export type LeaveGroupReply = ReplyOf<typeof leaveGroupApi>;

// DescribeGroups (15): state and members of classic groups. v3 authorised operations, v4 static
// members, v5 flexible, v6 error text and GROUP_ID_NOT_FOUND (KIP-1043).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, bytes, int16, int32, string } from '../fields.ts';

export const describeGroupsApi = api({
  key: 15,
  name: 'DescribeGroups',
  versions: '0-6',
  flexible: '5+',
  request: {
    groups: array(string),
    includeAuthorizedOperations: bool.since(3),
  },
  response: {
    throttleTimeMs: int32.since(1).default(0),
    groups: array({
      errorCode: int16,
      errorMessage: string.since(6).nullable().default(null),
      groupId: string,
      groupState: string,
      protocolType: string,
      protocolData: string,
      members: array({
        memberId: string,
        groupInstanceId: string.since(4).nullable().default(null),
        clientId: string,
        clientHost: string,
        memberMetadata: bytes,
        memberAssignment: bytes,
      }),
      authorizedOperations: int32.since(3).default(-2147483648),
    }),
  },
});

export interface DescribeGroupsRequest extends RequestOf<typeof describeGroupsApi> {}
export interface DescribeGroupsResponse extends ResponseOf<typeof describeGroupsApi> {}
export type DescribeGroupsReply = ReplyOf<typeof describeGroupsApi>;

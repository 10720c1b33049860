// ListGroups (16): groups coordinated by this broker (clients ask all and join the answers). v3
// flexible, v4 state filter (KIP-518), v5 type filter (KIP-848).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, string } from '../fields.ts';

export const listGroupsApi = api({
  key: 16,
  name: 'ListGroups',
  versions: '0-5',
  flexible: '3+',
  request: {
    statesFilter: array(string).since(4),
    typesFilter: array(string).since(5),
  },
  response: {
    throttleTimeMs: int32.since(1).default(0),
    errorCode: int16,
    groups: array({
      groupId: string,
      protocolType: string,
      groupState: string.since(4),
      groupType: string.since(5),
    }),
  },
});

export interface ListGroupsRequest extends RequestOf<typeof listGroupsApi> {}
export interface ListGroupsResponse extends ResponseOf<typeof listGroupsApi> {}
export type ListGroupsReply = ReplyOf<typeof listGroupsApi>;

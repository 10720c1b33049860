// DeleteGroups (42): deletes empty groups with their offsets. v2 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, string } from '../fields.ts';

export const deleteGroupsApi = api({
  key: 42,
  name: 'DeleteGroups',
  versions: '0-2',
  flexible: '2+',
  request: {
    groupsNames: array(string),
  },
  response: {
    throttleTimeMs: int32.default(0),
    results: array({
      groupId: string,
      errorCode: int16,
    }),
  },
});

export interface DeleteGroupsRequest extends RequestOf<typeof deleteGroupsApi> {}
export interface DeleteGroupsResponse extends ResponseOf<typeof deleteGroupsApi> {}
export type DeleteGroupsReply = ReplyOf<typeof deleteGroupsApi>;

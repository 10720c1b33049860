// DeleteAcls (31): deletes what the filters match and lists it. v1 pattern types (KIP-290), v2
// flexible, v3 user resources.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int8, int16, int32, string } from '../fields.ts';

export const deleteAclsApi = api({
  key: 31,
  name: 'DeleteAcls',
  versions: '1-3',
  flexible: '2+',
  request: {
    filters: array({
      resourceTypeFilter: int8,
      resourceNameFilter: string.nullable(),
      patternTypeFilter: int8.default(3),
      principalFilter: string.nullable(),
      hostFilter: string.nullable(),
      operation: int8,
      permissionType: int8,
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    filterResults: array({
      errorCode: int16,
      errorMessage: string.nullable(),
      matchingAcls: array({
        errorCode: int16,
        errorMessage: string.nullable(),
        resourceType: int8,
        resourceName: string,
        patternType: int8.default(3),
        principal: string,
        host: string,
        operation: int8,
        permissionType: int8,
      }),
    }),
  },
});

export interface DeleteAclsRequest extends RequestOf<typeof deleteAclsApi> {}
export interface DeleteAclsResponse extends ResponseOf<typeof deleteAclsApi> {}
export type DeleteAclsReply = ReplyOf<typeof deleteAclsApi>;

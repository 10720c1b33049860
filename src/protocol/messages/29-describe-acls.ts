// DescribeAcls (29): ACL bindings that match a filter. v1 pattern types (KIP-290), v2 flexible, v3
// user resources.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int8, int16, int32, string } from '../fields.ts';

export const describeAclsApi = api({
  key: 29,
  name: 'DescribeAcls',
  versions: '1-3',
  flexible: '2+',
  request: {
    resourceTypeFilter: int8,
    resourceNameFilter: string.nullable(),
    patternTypeFilter: int8.default(3),
    principalFilter: string.nullable(),
    hostFilter: string.nullable(),
    operation: int8,
    permissionType: int8,
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable(),
    resources: array({
      resourceType: int8,
      resourceName: string,
      patternType: int8.default(3),
      acls: array({
        principal: string,
        host: string,
        operation: int8,
        permissionType: int8,
      }),
    }),
  },
});

export interface DescribeAclsRequest extends RequestOf<typeof describeAclsApi> {}
export interface DescribeAclsResponse extends ResponseOf<typeof describeAclsApi> {}
export type DescribeAclsReply = ReplyOf<typeof describeAclsApi>;

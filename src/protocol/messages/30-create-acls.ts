// CreateAcls (30). v1 pattern types (KIP-290), v2 flexible, v3 user resources.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int8, int16, int32, string } from '../fields.ts';

export const createAclsApi = api({
  key: 30,
  name: 'CreateAcls',
  versions: '1-3',
  flexible: '2+',
  request: {
    creations: array({
      resourceType: int8,
      resourceName: string,
      resourcePatternType: int8.default(3),
      principal: string,
      host: string,
      operation: int8,
      permissionType: int8,
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    results: array({
      errorCode: int16,
      errorMessage: string.nullable(),
    }),
  },
});

export interface CreateAclsRequest extends RequestOf<typeof createAclsApi> {}
export interface CreateAclsResponse extends ResponseOf<typeof createAclsApi> {}
export type CreateAclsReply = ReplyOf<typeof createAclsApi>;

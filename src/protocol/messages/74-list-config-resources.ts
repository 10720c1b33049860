// ListConfigResources (74): names of config resources. v0 knew only client metrics.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int8, int16, int32, string } from '../fields.ts';

export const listConfigResourcesApi = api({
  key: 74,
  name: 'ListConfigResources',
  versions: '0-1',
  flexible: '0+',
  request: {
    resourceTypes: array(int8).since(1),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    configResources: array({
      resourceName: string,
      resourceType: int8.since(1).default(16),
    }),
  },
});

export interface ListConfigResourcesRequest extends RequestOf<typeof listConfigResourcesApi> {}
export interface ListConfigResourcesResponse extends ResponseOf<typeof listConfigResourcesApi> {}
export type ListConfigResourcesReply = ReplyOf<typeof listConfigResourcesApi>;

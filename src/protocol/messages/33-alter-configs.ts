// AlterConfigs (33): replaces all configs of a resource (IncrementalAlterConfigs is the better
// one). v2 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int8, int16, int32, string } from '../fields.ts';

export const alterConfigsApi = api({
  key: 33,
  name: 'AlterConfigs',
  versions: '0-2',
  flexible: '2+',
  request: {
    resources: array({
      resourceType: int8,
      resourceName: string,
      configs: array({
        name: string,
        value: string.nullable(),
      }),
    }),
    validateOnly: bool,
  },
  response: {
    throttleTimeMs: int32.default(0),
    responses: array({
      errorCode: int16,
      errorMessage: string.nullable(),
      resourceType: int8,
      resourceName: string,
    }),
  },
});

export interface AlterConfigsRequest extends RequestOf<typeof alterConfigsApi> {}
export interface AlterConfigsResponse extends ResponseOf<typeof alterConfigsApi> {}
export type AlterConfigsReply = ReplyOf<typeof alterConfigsApi>;

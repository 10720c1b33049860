// IncrementalAlterConfigs (44): set, delete, append, subtract single configs (KIP-339). v1
// flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int8, int16, int32, string } from '../fields.ts';

export const incrementalAlterConfigsApi = api({
  key: 44,
  name: 'IncrementalAlterConfigs',
  versions: '0-1',
  flexible: '1+',
  request: {
    resources: array({
      resourceType: int8,
      resourceName: string,
      configs: array({
        name: string,
        // 0 set, 1 delete, 2 append, 3 subtract.
        configOperation: int8,
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

export interface IncrementalAlterConfigsRequest
  extends RequestOf<typeof incrementalAlterConfigsApi> {}
export interface IncrementalAlterConfigsResponse
  extends ResponseOf<typeof incrementalAlterConfigsApi> {}
export type IncrementalAlterConfigsReply = ReplyOf<typeof incrementalAlterConfigsApi>;

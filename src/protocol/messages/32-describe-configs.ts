// DescribeConfigs (32). v1 sources and synonyms, v3 types and documentation, v4 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int8, int16, int32, string } from '../fields.ts';

export const describeConfigsApi = api({
  key: 32,
  name: 'DescribeConfigs',
  versions: '1-4',
  flexible: '4+',
  request: {
    resources: array({
      resourceType: int8,
      resourceName: string,
      configurationKeys: array(string).nullable(),
    }),
    includeSynonyms: bool.default(false),
    includeDocumentation: bool.since(3).default(false),
  },
  response: {
    throttleTimeMs: int32.default(0),
    results: array({
      errorCode: int16,
      errorMessage: string.nullable(),
      resourceType: int8,
      resourceName: string,
      configs: array({
        name: string,
        value: string.nullable(),
        readOnly: bool,
        // KIP-226: 1 topic, 2 and 3 broker, 4 static, 5 default, 8 group.
        configSource: int8.default(-1),
        isSensitive: bool,
        synonyms: array({
          name: string,
          value: string.nullable(),
          source: int8,
        }),
        configType: int8.since(3).default(0),
        documentation: string.since(3).nullable(),
      }),
    }),
  },
});

export interface DescribeConfigsRequest extends RequestOf<typeof describeConfigsApi> {}
export interface DescribeConfigsResponse extends ResponseOf<typeof describeConfigsApi> {}
export type DescribeConfigsReply = ReplyOf<typeof describeConfigsApi>;

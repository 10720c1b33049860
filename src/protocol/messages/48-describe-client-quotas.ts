// DescribeClientQuotas (48): quotas by user, client id, ip (KIP-546). v1 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, float64, int8, int16, int32, string } from '../fields.ts';

export const describeClientQuotasApi = api({
  key: 48,
  name: 'DescribeClientQuotas',
  versions: '0-1',
  flexible: '1+',
  request: {
    components: array({
      entityType: string,
      // 0 exact, 1 the default entity, 2 any.
      matchType: int8,
      match: string.nullable(),
    }),
    strict: bool,
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable(),
    entries: array({
      entity: array({
        entityType: string,
        entityName: string.nullable(),
      }),
      values: array({
        key: string,
        value: float64,
      }),
    }).nullable(),
  },
});

export interface DescribeClientQuotasRequest extends RequestOf<typeof describeClientQuotasApi> {}
export interface DescribeClientQuotasResponse extends ResponseOf<typeof describeClientQuotasApi> {}
export type DescribeClientQuotasReply = ReplyOf<typeof describeClientQuotasApi>;

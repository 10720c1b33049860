// AlterClientQuotas (49): sets and removes quotas (KIP-546). v1 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, float64, int16, int32, string } from '../fields.ts';

export const alterClientQuotasApi = api({
  key: 49,
  name: 'AlterClientQuotas',
  versions: '0-1',
  flexible: '1+',
  request: {
    entries: array({
      entity: array({
        entityType: string,
        entityName: string.nullable(),
      }),
      ops: array({
        key: string,
        value: float64,
        remove: bool,
      }),
    }),
    validateOnly: bool,
  },
  response: {
    throttleTimeMs: int32.default(0),
    entries: array({
      errorCode: int16,
      errorMessage: string.nullable(),
      entity: array({
        entityType: string,
        entityName: string.nullable(),
      }),
    }),
  },
});

export interface AlterClientQuotasRequest extends RequestOf<typeof alterClientQuotasApi> {}
export interface AlterClientQuotasResponse extends ResponseOf<typeof alterClientQuotasApi> {}
export type AlterClientQuotasReply = ReplyOf<typeof alterClientQuotasApi>;

// UpdateFeatures (57): finalises feature levels (KIP-584). v1 upgrade types and dry runs, v2 only a
// top-level error.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int8, int16, int32, string } from '../fields.ts';

export const updateFeaturesApi = api({
  key: 57,
  name: 'UpdateFeatures',
  versions: '0-2',
  flexible: '0+',
  request: {
    timeoutMs: int32.default(60000),
    featureUpdates: array({
      feature: string,
      maxVersionLevel: int16,
      allowDowngrade: bool.in('0'),
      upgradeType: int8.since(1).default(1),
    }),
    validateOnly: bool.since(1).default(false),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable(),
    results: array({
      feature: string,
      errorCode: int16,
      errorMessage: string.nullable(),
    }).in('0-1'),
  },
});

export interface UpdateFeaturesRequest extends RequestOf<typeof updateFeaturesApi> {}
export interface UpdateFeaturesResponse extends ResponseOf<typeof updateFeaturesApi> {}
export type UpdateFeaturesReply = ReplyOf<typeof updateFeaturesApi>;

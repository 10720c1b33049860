// UpdateFeatures (57), versions 0–2 (KIP-584): levels are those of the program, the same for all its brokers, so a feature
// can be set to the level it has and to no other: INVALID_UPDATE_VERSION for the whole request, as in Kafka, where one
// refusal refuses all. v1 dry runs, v2 only the top-level error.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type UpdateFeaturesReply,
  type UpdateFeaturesRequest,
  updateFeaturesApi,
} from '../../protocol/messages/57-update-features.ts';
import type { Handler } from '../handler.ts';
import { FEATURES } from './18-api-versions.ts';

export const updateFeaturesHandler: Handler<typeof updateFeaturesApi> = {
  api: updateFeaturesApi,
  versions: { min: 0, max: 2 },
  handle({ featureUpdates }, context) {
    const fault = context.access.allows('alter', 'cluster')
      ? firstFault(featureUpdates)
      : refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 'Alter on the cluster is not allowed');
    if (fault !== undefined) {
      context.countError(fault.errorCode);
      return fault;
    }
    const results = featureUpdates.map(({ feature }) => ({
      feature,
      errorCode: 0,
      errorMessage: null,
    }));
    return { errorCode: 0, errorMessage: null, results };
  },
};

function firstFault(
  updates: UpdateFeaturesRequest['featureUpdates'],
): UpdateFeaturesReply | undefined {
  for (const { feature, maxVersionLevel } of updates) {
    const level = FEATURES.find(({ name }) => name === feature)?.level;
    if (level === maxVersionLevel) continue;
    const why =
      level === undefined ? 'there is no such feature' : `it is at ${level}, which never changes`;
    return refusal(
      ErrorCode.INVALID_UPDATE_VERSION,
      `feature ${feature} can't be set to ${maxVersionLevel}: ${why}; nothing was updated`,
    );
  }
  return undefined;
}

function refusal(errorCode: number, errorMessage: string): UpdateFeaturesReply {
  return { errorCode, errorMessage, results: [] };
}

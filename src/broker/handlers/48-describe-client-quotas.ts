// DescribeClientQuotas (48), versions 0–1 (KIP-546): the quotas whose entities match every component of the filter;
// `strict` leaves out entities with further parts. v1 flexible.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type DescribeClientQuotasReply,
  describeClientQuotasApi,
} from '../../protocol/messages/48-describe-client-quotas.ts';
import type { Handler } from '../handler.ts';
import { filterFault, matches } from '../quotas/entities.ts';

export const describeClientQuotasHandler: Handler<typeof describeClientQuotasApi> = {
  api: describeClientQuotasApi,
  versions: { min: 0, max: 1 },
  handle({ components, strict }, context) {
    const { access, services } = context;
    const fault = access.allows('describeConfigs', 'cluster')
      ? filterFault(components)
      : notAllowed();
    if (fault !== undefined) {
      context.countError(fault.errorCode);
      return { ...fault, entries: null };
    }
    const found = services.quotas.list().filter((quota) => matches(quota, components, strict));
    const entries = found.map(({ entity, values }) => ({
      entity: Object.entries(entity).map(([entityType, entityName]) => ({
        entityType,
        entityName: entityName ?? null,
      })),
      values: Object.entries(values).map(([key, value]) => ({ key, value })),
    }));
    return { errorCode: 0, errorMessage: null, entries };
  },
  failed: (_request, { code, message }): DescribeClientQuotasReply => ({
    errorCode: code,
    errorMessage: message,
    entries: null,
  }),
};

function notAllowed() {
  const errorMessage = 'DescribeConfigs on the cluster is not allowed';
  return { errorCode: ErrorCode.CLUSTER_AUTHORIZATION_FAILED, errorMessage };
}

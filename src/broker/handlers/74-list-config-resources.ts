// ListConfigResources (74), versions 0–1: which resources have configs. v0 asks for client metrics subscriptions only,
// v1 by types, an empty list meaning all (KIP-1142). Groups are those that have configs of their own.
import { ErrorCode } from '../../protocol/errors.ts';
import { listConfigResourcesApi } from '../../protocol/messages/74-list-config-resources.ts';
import { RESOURCE, RESOURCE_KINDS } from '../config-resources.ts';
import type { Handler, RequestContext } from '../handler.ts';

const KNOWN: readonly number[] = Object.values(RESOURCE);

export const listConfigResourcesHandler: Handler<typeof listConfigResourcesApi> = {
  api: listConfigResourcesApi,
  versions: { min: 0, max: 1 },
  handle({ resourceTypes }, context) {
    const { apiVersion } = context;
    const refuse = (errorCode: number) => {
      context.countError(errorCode);
      return { errorCode, configResources: [] };
    };
    if (!context.access.allows('describeConfigs', 'cluster')) {
      return refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED);
    }
    const asked = apiVersion === 0 ? [RESOURCE.clientMetrics] : resourceTypes;
    const types = asked.length === 0 ? KNOWN : [...new Set(asked)];
    if (types.some((type) => !KNOWN.includes(type))) return refuse(ErrorCode.UNSUPPORTED_VERSION);
    const configResources = types.flatMap((resourceType) =>
      namesOf(context, resourceType).map((resourceName) => ({ resourceName, resourceType })),
    );
    return { errorCode: 0, configResources };
  },
};

function namesOf({ services, connection }: RequestContext, type: number): string[] {
  const { directory, cluster, resourceConfigs } = services;
  const kind = RESOURCE_KINDS[type];
  if (kind !== undefined) return [...resourceConfigs.all(kind).keys()];
  if (type === RESOURCE.topic) return directory.all().map(({ name }) => name);
  return cluster.brokers(connection.listener).map(({ nodeId }) => String(nodeId));
}

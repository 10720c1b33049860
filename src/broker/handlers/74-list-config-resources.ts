// ListConfigResources (74), versions 0–1: which resources have configs. v0 asks for client metrics only, of which
// there are none; v1 by types, an empty list meaning all (KIP-1142).
import { ErrorCode } from '../../protocol/errors.ts';
import { listConfigResourcesApi } from '../../protocol/messages/74-list-config-resources.ts';
import { RESOURCE } from '../config-resources.ts';
import type { Handler } from '../handler.ts';
import type { BrokerServices } from '../services.ts';

const KNOWN: readonly number[] = Object.values(RESOURCE);

export const listConfigResourcesHandler: Handler<typeof listConfigResourcesApi> = {
  api: listConfigResourcesApi,
  versions: { min: 0, max: 1 },
  handle({ resourceTypes }, { apiVersion, services }) {
    if (apiVersion === 0) return { errorCode: 0, configResources: [] };
    const types = resourceTypes.length === 0 ? KNOWN : [...new Set(resourceTypes)];
    if (types.some((type) => !KNOWN.includes(type))) {
      return { errorCode: ErrorCode.UNSUPPORTED_VERSION, configResources: [] };
    }
    const configResources = types.flatMap((resourceType) =>
      namesOf(services, resourceType).map((resourceName) => ({ resourceName, resourceType })),
    );
    return { errorCode: 0, configResources };
  },
};

function namesOf({ directory, cluster }: BrokerServices, type: number): string[] {
  if (type === RESOURCE.topic) return directory.all().map(({ name }) => name);
  return type === RESOURCE.broker ? [String(cluster.nodeId)] : [];
}

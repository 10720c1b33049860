// AlterConfigs (33), versions 0–2: replaces all configs of a resource; what isn't named returns to its default.
// Old tools use it; IncrementalAlterConfigs (44) is the safe one. Loggers can't be altered so. v2 flexible.
import {
  type AlterConfigsRequest,
  alterConfigsApi,
} from '../../protocol/messages/33-alter-configs.ts';
import { type ConfigChanges, currentConfig, malformed, RESOURCE } from '../config-resources.ts';
import type { Handler } from '../handler.ts';
import type { BrokerServices } from '../services.ts';
import { alterResources, checkNamedOnce } from './alter-resources.ts';

type Resource = AlterConfigsRequest['resources'][number];

export const alterConfigsHandler: Handler<typeof alterConfigsApi> = {
  api: alterConfigsApi,
  versions: { min: 0, max: 2 },
  async handle(request, context) {
    const changes = (resource: Resource) => replacement(context.services, resource);
    return { responses: await alterResources(request, context, changes) };
  },
};

/** Everything set now and not named is removed. */
function replacement(services: BrokerServices, resource: Resource): ConfigChanges {
  if (resource.resourceType === RESOURCE.brokerLogger) {
    throw malformed('loggers are altered by IncrementalAlterConfigs only');
  }
  checkNamedOnce(resource.configs);
  const changes: Record<string, string | null> = {};
  for (const name of Object.keys(currentConfig(services, resource) ?? {})) changes[name] = null;
  for (const { name, value } of resource.configs) {
    if (value === null) throw malformed(`config "${name}" has no value`);
    changes[name] = value;
  }
  return changes;
}

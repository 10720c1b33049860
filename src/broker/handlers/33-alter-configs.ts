// AlterConfigs (33), versions 0–2: replaces all configs of a resource; what isn't named returns to its default.
// Old tools use it; IncrementalAlterConfigs (44) is the safe one. Loggers can't be altered so. v2 flexible.
import {
  type AlterConfigsRequest,
  alterConfigsApi,
} from '../../protocol/messages/33-alter-configs.ts';
import {
  alterResource,
  type ConfigChanges,
  currentConfig,
  malformed,
  RESOURCE,
  resourceKey,
} from '../config-resources.ts';
import type { Handler } from '../handler.ts';
import type { BrokerServices } from '../services.ts';
import { repeated } from './repeated.ts';

type Resource = AlterConfigsRequest['resources'][number];

export const alterConfigsHandler: Handler<typeof alterConfigsApi> = {
  api: alterConfigsApi,
  versions: { min: 0, max: 2 },
  async handle({ resources, validateOnly }, context) {
    const twice = repeated(resources.map(resourceKey));
    const responses = [];
    for (const resource of resources) {
      const changes = () => {
        if (twice.has(resourceKey(resource))) throw malformed('a resource is named twice');
        return replacement(context.services, resource);
      };
      const outcome = await alterResource(context, resource, { changes, validateOnly });
      if (outcome.errorCode !== 0) context.countError(outcome.errorCode);
      responses.push(outcome);
    }
    return { responses };
  },
};

/** Everything set now and not named is removed. */
function replacement(services: BrokerServices, resource: Resource): ConfigChanges {
  if (resource.resourceType === RESOURCE.brokerLogger) {
    throw malformed('loggers are altered by IncrementalAlterConfigs only');
  }
  const [twice] = repeated(resource.configs.map(({ name }) => name));
  if (twice !== undefined) throw malformed(`config "${twice}" is named twice`);
  const changes: Record<string, string | null> = {};
  for (const name of Object.keys(currentConfig(services, resource) ?? {})) changes[name] = null;
  for (const { name, value } of resource.configs) {
    if (value === null) throw malformed(`config "${name}" has no value`);
    changes[name] = value;
  }
  return changes;
}

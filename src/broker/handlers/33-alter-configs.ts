// AlterConfigs (33), versions 0–2: replaces all configs of a resource; what isn't named returns to its default.
// Old tools use it; IncrementalAlterConfigs (44) is the safe one. v2 flexible.
import { FloeError } from '../../base/error.ts';
import {
  type AlterConfigsRequest,
  alterConfigsApi,
} from '../../protocol/messages/33-alter-configs.ts';
import { alterResource, type ConfigChanges, currentConfig } from '../config-resources.ts';
import type { Handler } from '../handler.ts';
import type { BrokerServices } from '../services.ts';

type Resource = AlterConfigsRequest['resources'][number];

export const alterConfigsHandler: Handler<typeof alterConfigsApi> = {
  api: alterConfigsApi,
  versions: { min: 0, max: 2 },
  async handle({ resources, validateOnly }, context) {
    const responses = [];
    for (const resource of resources) {
      const changes = () => replacement(context.services, resource);
      const outcome = await alterResource(context.services, resource, { changes, validateOnly });
      if (outcome.errorCode !== 0) context.countError(outcome.errorCode);
      responses.push(outcome);
    }
    return { responses };
  },
};

/** Everything set now and not named is removed. */
function replacement(services: BrokerServices, resource: Resource): ConfigChanges {
  const changes: Record<string, string | null> = {};
  for (const name of Object.keys(currentConfig(services, resource) ?? {})) changes[name] = null;
  for (const { name, value } of resource.configs) {
    if (value === null) throw new FloeError('invalid', `config "${name}" has no value`);
    changes[name] = value;
  }
  return changes;
}

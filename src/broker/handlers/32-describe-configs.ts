// DescribeConfigs (32), versions 1–4: configs of topics and of this broker ('' = what AlterConfigs set for all
// brokers). v1 sources and synonyms (KIP-226), v3 types and documentation (KIP-569).
// Other resources (broker loggers, client metrics, groups) have no configs here: an empty list.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type DescribeConfigsReply,
  type DescribeConfigsRequest,
  describeConfigsApi,
} from '../../protocol/messages/32-describe-configs.ts';
import {
  type ConfigEntry,
  describeBrokerConfigs,
  describeClusterDefaults,
  describeTopicConfigs,
} from '../config-entries.ts';
import { RESOURCE } from '../config-resources.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { topicNameFault } from '../topic-lookup.ts';

type Result = DescribeConfigsReply['results'][number];
type Resource = DescribeConfigsRequest['resources'][number];

export const describeConfigsHandler: Handler<typeof describeConfigsApi> = {
  api: describeConfigsApi,
  versions: { min: 1, max: 4 },
  handle({ resources, includeSynonyms, includeDocumentation }, context) {
    const shown = (entries: readonly ConfigEntry[]) =>
      entries.map((entry) => ({
        ...entry,
        synonyms: includeSynonyms ? entry.synonyms : [],
        documentation: includeDocumentation ? entry.documentation : null,
      }));
    const results = resources.map((resource): Result => {
      const { resourceType, resourceName } = resource;
      const found = entriesOf(resource, context);
      if (Array.isArray(found)) {
        const configs = shown(found);
        return { errorCode: 0, errorMessage: null, resourceType, resourceName, configs };
      }
      context.countError(found.errorCode);
      return { ...found, resourceType, resourceName, configs: [] };
    });
    return { results };
  },
};

interface Refusal {
  readonly errorCode: number;
  readonly errorMessage: string;
}

function entriesOf(
  { resourceType, resourceName, configurationKeys }: Resource,
  { services }: RequestContext,
): ConfigEntry[] | Refusal {
  // Some old clients send an empty list for "all".
  const names = configurationKeys?.length === 0 ? null : configurationKeys;
  if (resourceType === RESOURCE.topic) {
    const fault = topicNameFault(resourceName);
    if (fault !== undefined) {
      return { errorCode: ErrorCode.INVALID_TOPIC_EXCEPTION, errorMessage: fault };
    }
    const topic = services.directory.byName(resourceName);
    if (topic !== undefined) return describeTopicConfigs(services, topic.config, names);
    const errorMessage = `there is no topic "${resourceName}"`;
    return { errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, errorMessage };
  }
  if (resourceType === RESOURCE.broker) {
    if (resourceName === '') return describeClusterDefaults(services.config);
    if (resourceName === String(services.cluster.nodeId)) {
      return describeBrokerConfigs(services.config, names);
    }
    const errorMessage = `this is broker ${services.cluster.nodeId}, not "${resourceName}"`;
    return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage };
  }
  return [];
}

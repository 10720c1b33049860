// DescribeConfigs (32), versions 1–4: configs of topics, of this broker ('' = what AlterConfigs set for all brokers), of
// its loggers, of groups and of client metrics subscriptions; those two need not exist: then all is default.
// v1 sources and synonyms (KIP-226), v3 types and documentation (KIP-569).
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
  describeLoggers,
  describeResource,
  describeTopicConfigs,
} from '../config-entries.ts';
import {
  accessFault,
  RESOURCE,
  RESOURCE_KINDS,
  type ResourceFault,
  resourceFault,
} from '../config-resources.ts';
import type { Handler, RequestContext } from '../handler.ts';
import type { BrokerServices } from '../services.ts';
import { learnTopics, topicNameFault } from '../topic-lookup.ts';
import { topicsAmong } from './alter-resources.ts';

type Result = DescribeConfigsReply['results'][number];
type Resource = DescribeConfigsRequest['resources'][number];

export const describeConfigsHandler: Handler<typeof describeConfigsApi> = {
  api: describeConfigsApi,
  versions: { min: 1, max: 4 },
  async handle({ resources, includeSynonyms, includeDocumentation }, context) {
    await learnTopics(context, () => topicsAmong(resources));
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

function entriesOf(resource: Resource, context: RequestContext): ConfigEntry[] | ResourceFault {
  const { services } = context;
  const fault =
    accessFault(context, 'describeConfigs', resource) ?? resourceFault(services, resource);
  if (fault !== undefined) return fault;
  const { resourceType, resourceName: name, configurationKeys } = resource;
  // Some old clients send an empty list for "all".
  const names = configurationKeys?.length === 0 ? null : configurationKeys;
  const kind = RESOURCE_KINDS[resourceType];
  if (kind !== undefined) return describeResource(services, { kind, name }, names);
  if (resourceType === RESOURCE.topic) return topicEntries(services, name, names);
  if (resourceType === RESOURCE.brokerLogger) return describeLoggers(services, names);
  return name === ''
    ? describeClusterDefaults(services.config, names)
    : describeBrokerConfigs(services.config, names);
}

function topicEntries(
  services: BrokerServices,
  name: string,
  names: readonly string[] | null,
): ConfigEntry[] | ResourceFault {
  const fault = topicNameFault(name);
  if (fault !== undefined) {
    return { errorCode: ErrorCode.INVALID_TOPIC_EXCEPTION, errorMessage: fault };
  }
  const topic = services.directory.byName(name);
  if (topic !== undefined) return describeTopicConfigs(services, topic.config, names);
  const errorMessage = `there is no topic "${name}"`;
  return { errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, errorMessage };
}

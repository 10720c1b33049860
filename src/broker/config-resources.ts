// Changing configs of a topic or the broker: what AlterConfigs and IncrementalAlterConfigs have in common.
import { FloeError } from '../base/error.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { kafkaCodeOf } from './failures.ts';
import type { BrokerServices } from './services.ts';

/** Kafka's numbers of config resources. */
export const RESOURCE = {
  topic: 2,
  broker: 4,
  brokerLogger: 8,
  clientMetrics: 16,
  group: 32,
} as const;

export interface ResourceName {
  readonly resourceType: number;
  readonly resourceName: string;
}

export interface AlterOutcome extends ResourceName {
  readonly errorCode: number;
  readonly errorMessage: string | null;
}

/** What a resource has set; undefined when there is no such resource. */
export function currentConfig(
  { directory, config, cluster }: BrokerServices,
  { resourceType, resourceName }: ResourceName,
): Readonly<Record<string, string>> | undefined {
  if (resourceType === RESOURCE.topic) return directory.byName(resourceName)?.config;
  const known = resourceName === '' || resourceName === String(cluster.nodeId);
  return known ? config.overrides(resourceName) : undefined;
}

export type ConfigChanges = Readonly<Record<string, string | null>>;

/** Checks the changes and, unless `validateOnly`, makes them. Never rejects. */
export async function alterResource(
  services: BrokerServices,
  resource: ResourceName,
  options: { readonly changes: () => ConfigChanges; readonly validateOnly: boolean },
): Promise<AlterOutcome> {
  const { resourceType, resourceName } = resource;
  const outcome = (errorCode: number, errorMessage: string | null) => ({
    resourceType,
    resourceName,
    errorCode,
    errorMessage,
  });
  if (resourceType !== RESOURCE.topic && resourceType !== RESOURCE.broker) {
    const why = `resources of type ${resourceType} have no configs here`;
    return outcome(ErrorCode.INVALID_REQUEST, why);
  }
  if (currentConfig(services, resource) === undefined) {
    return resourceType === RESOURCE.topic
      ? outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `there is no topic "${resourceName}"`)
      : outcome(ErrorCode.INVALID_REQUEST, `this is broker ${services.cluster.nodeId}`);
  }
  try {
    const alter = resourceType === RESOURCE.topic ? alterTopic : alterBroker;
    await alter(services, resourceName, options.changes(), options.validateOnly);
    return outcome(0, null);
  } catch (caught) {
    const error = FloeError.from(caught);
    const code = error.code === 'invalid' ? ErrorCode.INVALID_CONFIG : kafkaCodeOf(error);
    return outcome(code, error.message);
  }
}

async function alterTopic(
  { directory, topicConfigs }: BrokerServices,
  name: string,
  changes: ConfigChanges,
  validateOnly: boolean,
): Promise<void> {
  const topic = directory.byName(name);
  if (topic === undefined) throw new FloeError('not-found', `there is no topic "${name}"`);
  const checked = await topicConfigs.check(topic, changes);
  if (!validateOnly) await directory.alterConfig(topic.topicId, checked);
}

async function alterBroker(
  { config }: BrokerServices,
  scope: string,
  changes: ConfigChanges,
  validateOnly: boolean,
): Promise<void> {
  const checked = config.check(changes);
  if (!validateOnly) await config.alter(scope, checked);
}

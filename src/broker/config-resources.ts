// The resources that have configs, by Kafka's type numbers: whether one exists, what it has set, and how it is changed.
// What AlterConfigs, IncrementalAlterConfigs and DescribeConfigs have in common. Codes are those of Kafka 4.3: a bad
// value of a topic is INVALID_CONFIG, of a broker INVALID_REQUEST.
import { FloeError } from '../base/error.ts';
import { QUARANTINE_CONFIG, quarantinedPartitions } from '../metadata/quarantine.ts';
import type { ResourceKind } from '../metadata/resource-configs.ts';
import type { Topic } from '../metadata/topics.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { kafkaCodeOf } from './failures.ts';
import type { RequestContext } from './handler.ts';
import { RESOURCE_DEFINITIONS } from './resource-definitions.ts';
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

/** A client's mistake: a Kafka error code with a sentence. */
export interface ResourceFault {
  readonly errorCode: number;
  readonly errorMessage: string;
}

export interface AlterOutcome extends ResourceName {
  readonly errorCode: number;
  readonly errorMessage: string | null;
}

export type ConfigChanges = Readonly<Record<string, string | null>>;

/** Resources whose configs lie in ResourceConfigs, by type. */
export const RESOURCE_KINDS: Readonly<Record<number, ResourceKind>> = {
  [RESOURCE.group]: 'group',
  [RESOURCE.clientMetrics]: 'client-metrics',
};

/** What a resource has set; undefined when there is no such resource. */
export function currentConfig(
  { directory, config, resourceConfigs }: BrokerServices,
  { resourceType, resourceName }: ResourceName,
): Readonly<Record<string, string>> | undefined {
  const kind = RESOURCE_KINDS[resourceType];
  if (kind !== undefined) return resourceConfigs.of(kind, resourceName) ?? {};
  if (resourceType === RESOURCE.topic) return directory.byName(resourceName)?.config;
  return resourceType === RESOURCE.broker ? config.overrides(resourceName) : {};
}

/** Why a resource can't be named so, for all but topics, which exist or don't. */
export function resourceFault(
  services: BrokerServices,
  { resourceType, resourceName }: ResourceName,
): ResourceFault | undefined {
  const kind = RESOURCE_KINDS[resourceType];
  const nodeId = String(services.cluster.nodeId);
  let why: string | undefined;
  if (kind !== undefined) why = RESOURCE_DEFINITIONS[kind].nameFault(resourceName);
  else if (resourceType === RESOURCE.broker || resourceType === RESOURCE.brokerLogger) {
    const named =
      resourceName === nodeId || (resourceName === '' && resourceType === RESOURCE.broker);
    // As in Kafka: clients send what is a broker's own to that broker.
    if (!named)
      why = `this is broker ${nodeId}, not "${resourceName}": ask the broker that is meant`;
  } else if (resourceType !== RESOURCE.topic) {
    why = `resources of type ${resourceType} have no configs`;
  }
  if (why === undefined) return undefined;
  return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage: why };
}

const NOT_ALLOWED: Readonly<Record<number, number>> = {
  [RESOURCE.topic]: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
  [RESOURCE.group]: ErrorCode.GROUP_AUTHORIZATION_FAILED,
};

/** The refusal for a client that may not describe or alter configs of a resource. */
export function accessFault(
  { access }: RequestContext,
  operation: 'describeConfigs' | 'alterConfigs',
  { resourceType, resourceName }: ResourceName,
): ResourceFault | undefined {
  let allowed: boolean;
  if (resourceType === RESOURCE.topic) allowed = access.allows(operation, 'topic', resourceName);
  else if (resourceType === RESOURCE.group) {
    allowed = access.allows(operation, 'group', resourceName);
  } else allowed = access.allows(operation, 'cluster');
  if (allowed) return undefined;
  const errorCode = NOT_ALLOWED[resourceType] ?? ErrorCode.CLUSTER_AUTHORIZATION_FAILED;
  return { errorCode, errorMessage: `${operation} is not allowed` };
}

/** Checks the changes and, unless `validateOnly`, makes them. Never rejects. */
export async function alterResource(
  context: RequestContext,
  { resourceType, resourceName }: ResourceName,
  options: { readonly changes: () => ConfigChanges; readonly validateOnly: boolean },
): Promise<AlterOutcome> {
  const resource = { resourceType, resourceName };
  const { services } = context;
  const fault = accessFault(context, 'alterConfigs', resource) ?? resourceFault(services, resource);
  if (fault !== undefined) return { ...resource, ...fault };
  try {
    const alter = prepare(context, resource);
    await alter(options.changes(), options.validateOnly);
    return { ...resource, errorCode: 0, errorMessage: null };
  } catch (caught) {
    const error = FloeError.from(caught);
    const errorCode =
      error.code === 'invalid' ? invalidCode(resourceType, error) : kafkaCodeOf(error);
    return { ...resource, errorCode, errorMessage: error.message };
  }
}

/** A malformed request is one for every resource; a bad value is Kafka's for the type. */
function invalidCode(resourceType: number, { details }: FloeError): number {
  const { errorCode } = details;
  if (typeof errorCode === 'number') return errorCode;
  const kind = RESOURCE_KINDS[resourceType];
  if (kind !== undefined) return RESOURCE_DEFINITIONS[kind].faultCode;
  const isBroker = resourceType === RESOURCE.broker;
  return isBroker ? ErrorCode.INVALID_REQUEST : ErrorCode.INVALID_CONFIG;
}

/** A mistake of the request's form, whatever the resource. */
export function malformed(message: string): FloeError {
  return new FloeError('invalid', message, { details: { errorCode: ErrorCode.INVALID_REQUEST } });
}

type Alter = (changes: ConfigChanges, validateOnly: boolean) => Promise<void>;

/** How a resource is changed. @throws FloeError `not-found` for a topic that isn't there. */
function prepare(context: RequestContext, { resourceType, resourceName }: ResourceName): Alter {
  const { services } = context;
  const kind = RESOURCE_KINDS[resourceType];
  if (kind !== undefined) return alterKept(services, { kind, name: resourceName });
  if (resourceType === RESOURCE.broker) return alterBroker(services, resourceName);
  return resourceType === RESOURCE.topic
    ? alterTopic(context, resourceName)
    : alterLoggers(services);
}

function alterTopic({ services, access }: RequestContext, name: string): Alter {
  const { directory, topicConfigs } = services;
  const topic = directory.byName(name);
  if (topic === undefined) throw new FloeError('not-found', `there is no topic "${name}"`);
  return async (changes, validateOnly) => {
    const checked = await topicConfigs.check(topic, changes, (other) =>
      access.allows('write', 'topic', other),
    );
    if (validateOnly) return;
    const altered = await directory.alterConfig(topic.topicId, checked);
    if (QUARANTINE_CONFIG in checked) warnOfAbsent(services, altered);
  };
}

/** Partitions may come later: what isn't there is no mistake, but perhaps meant otherwise. */
function warnOfAbsent({ logger }: BrokerServices, topic: Topic): void {
  const count = topic.partitions.length;
  const absent = [...quarantinedPartitions(topic)].filter((index) => index >= count);
  if (absent.length === 0) return;
  logger.warn(
    { topic: topic.name, absent, partitions: count },
    `${QUARANTINE_CONFIG} names partitions that the topic doesn't have`,
  );
}

function alterBroker({ config }: BrokerServices, scope: string): Alter {
  return async (changes, validateOnly) => {
    const checked = config.check(changes);
    if (!validateOnly) await config.alter(scope, checked);
  };
}

function alterKept(
  { resourceConfigs, config }: BrokerServices,
  resource: { readonly kind: ResourceKind; readonly name: string },
): Alter {
  return async (changes, validateOnly) => {
    const checked = resourceConfigs.check(resource, changes, (name) => config.text(name));
    if (!validateOnly) await resourceConfigs.alter(resource.kind, resource.name, checked);
  };
}

function alterLoggers({ loggers }: BrokerServices): Alter {
  return async (changes, validateOnly) => {
    loggers.check(changes);
    if (!validateOnly) loggers.alter(changes);
  };
}

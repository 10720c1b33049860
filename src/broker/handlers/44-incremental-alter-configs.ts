// IncrementalAlterConfigs (44), versions 0–1 (KIP-339): sets, deletes, appends to and subtracts from single configs.
// Append and subtract are for lists and start from the value in force; loggers know neither.
import { FloeError } from '../../base/error.ts';
import { findSetting } from '../../base/settings.ts';
import {
  type IncrementalAlterConfigsRequest,
  incrementalAlterConfigsApi,
} from '../../protocol/messages/44-incremental-alter-configs.ts';
import {
  type ConfigChanges,
  currentConfig,
  malformed,
  RESOURCE,
  RESOURCE_KINDS,
} from '../config-resources.ts';
import type { Handler } from '../handler.ts';
import { RESOURCE_DEFINITIONS } from '../resource-definitions.ts';
import type { BrokerServices } from '../services.ts';
import { type BrokerSettings, brokerSettings } from '../settings.ts';
import { alterResources, checkNamedOnce } from './alter-resources.ts';

type Resource = IncrementalAlterConfigsRequest['resources'][number];
type Operation = Resource['configs'][number];

const SET = 0;
const DELETE = 1;
const APPEND = 2;
const SUBTRACT = 3;

export const incrementalAlterConfigsHandler: Handler<typeof incrementalAlterConfigsApi> = {
  api: incrementalAlterConfigsApi,
  versions: { min: 0, max: 1 },
  async handle(request, context) {
    const changes = (resource: Resource) => changesOf(context.services, resource);
    return { responses: await alterResources(request, context, changes) };
  },
};

function changesOf(services: BrokerServices, resource: Resource): ConfigChanges {
  checkNamedOnce(resource.configs);
  const changes: Record<string, string | null> = {};
  for (const operation of resource.configs) {
    changes[operation.name] = changed(services, resource, operation);
  }
  return changes;
}

function changed(
  services: BrokerServices,
  resource: Resource,
  { name, configOperation, value }: Operation,
): string | null {
  if (configOperation === DELETE) return null;
  if (value === null) throw malformed(`config "${name}" has no value`);
  if (configOperation === SET) return value;
  if (configOperation !== APPEND && configOperation !== SUBTRACT) {
    throw malformed(`config "${name}": unknown operation ${configOperation}`);
  }
  if (resource.resourceType === RESOURCE.brokerLogger) {
    throw malformed('append and subtract are not for loggers');
  }
  const items = itemsInForce(services, resource, name);
  const given = itemsOf(value);
  const result =
    configOperation === APPEND
      ? [...items, ...given.filter((item) => !items.includes(item))]
      : items.filter((item) => !given.includes(item));
  return result.join(',');
}

function itemsInForce(services: BrokerServices, resource: Resource, name: string): string[] {
  const own = currentConfig(services, resource) ?? {};
  const kind = RESOURCE_KINDS[resource.resourceType];
  if (kind !== undefined) {
    const setting = RESOURCE_DEFINITIONS[kind].settings[name];
    if (setting?.type !== 'list') throw notList(name);
    return itemsOf(own[name] ?? setting.format(setting.default));
  }
  if (resource.resourceType === RESOURCE.topic) {
    const [proper, setting] = services.topicConfigs.find(name);
    if (setting.type !== 'list') throw notList(name);
    return itemsOf(services.topicConfigs.effective(own, proper));
  }
  const found = findSetting(brokerSettings, name);
  if (found === undefined || found[1].type !== 'list') throw notList(name);
  return itemsOf(own[found[0]] ?? services.config.formatted(found[0] as keyof BrokerSettings));
}

const itemsOf = (text: string) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

function notList(name: string): FloeError {
  return new FloeError('invalid', `config "${name}" is no list: append and subtract need one`);
}

// Configs as DescribeConfigs and CreateTopics show them: value, source, type, documentation, synonyms.
import type { Setting } from '../base/settings.ts';
import type { ResourceKind } from '../metadata/resource-configs.ts';
import {
  type BrokerConfig,
  baseOfListenerSetting,
  CONFIG_SOURCE,
  type ConfigLayer,
  DYNAMIC,
} from './broker-config.ts';
import { ROOT_LOGGER } from './logger-levels.ts';
import { RESOURCE_DEFINITIONS } from './resource-definitions.ts';
import type { BrokerServices } from './services.ts';
import { type BrokerSettings, brokerSettings } from './settings.ts';
import { BROKER_SYNONYMS } from './topic-settings.ts';

export interface ConfigSynonym {
  readonly name: string;
  readonly value: string | null;
  readonly source: number;
}

export interface ConfigEntry {
  readonly name: string;
  readonly value: string | null;
  readonly readOnly: boolean;
  readonly configSource: number;
  readonly isSensitive: boolean;
  /** From the value in force down to the default. */
  readonly synonyms: readonly ConfigSynonym[];
  readonly configType: number;
  readonly documentation: string;
}

/** Kafka's numbers of config types (DescribeConfigs v3). */
const CONFIG_TYPE: Readonly<Record<Setting<unknown>['type'], number>> = {
  boolean: 1,
  string: 2,
  int: 3,
  long: 5,
  double: 6,
  list: 7,
  password: 9,
};

/** Kafka gives levels of loggers no type. */
const UNKNOWN_TYPE = 0;

/** Every config of a topic that sets `config`, or those of `names`. Unknown names are left out, as in Kafka. */
export function describeTopicConfigs(
  services: BrokerServices,
  config: Readonly<Record<string, string>>,
  names?: readonly string[] | null,
): ConfigEntry[] {
  const { topicConfigs } = services;
  const definitions = topicConfigs.definitions();
  // Those set under open families (x.properties.*) have no definition of their own in the list.
  const all = names ?? [...new Set([...Object.keys(definitions), ...Object.keys(config)])];
  const entries: ConfigEntry[] = [];
  for (const name of all) {
    const setting = definitions[name] ?? (name in config ? topicConfigs.find(name)[1] : undefined);
    if (setting !== undefined) entries.push(topicEntry(services, config, name, setting));
  }
  return entries;
}

function topicEntry(
  services: BrokerServices,
  config: Readonly<Record<string, string>>,
  name: string,
  setting: Setting<unknown>,
): ConfigEntry {
  const synonyms: ConfigSynonym[] = [];
  const own = config[name];
  if (own !== undefined) synonyms.push({ name, value: own, source: CONFIG_SOURCE.topic });
  synonyms.push(...defaultsOf(services, name));
  return entry({ name, setting, synonyms, readOnly: false });
}

/** Where a topic config's default comes from. */
function defaultsOf({ config, topicConfigs }: BrokerServices, name: string): ConfigSynonym[] {
  const synonym = BROKER_SYNONYMS[name];
  const layers: readonly ConfigLayer[] =
    synonym === undefined ? [] : config.layers(synonym).filter(({ value }) => value !== '');
  const named = layers.map((layer) => ({ name: synonym!, ...layer }));
  // retention.ms may come from hours or minutes, which no layer of log.retention.ms shows.
  if (named.length > 0) return named;
  return [
    {
      name: synonym ?? name,
      value: topicConfigs.brokerDefault(name),
      source: CONFIG_SOURCE.default,
    },
  ];
}

/** Every setting of the broker, or those of `names`. */
export function describeBrokerConfigs(
  config: BrokerConfig,
  names?: readonly string[] | null,
): ConfigEntry[] {
  const entries: ConfigEntry[] = [];
  const wanted = names === null || names === undefined ? undefined : new Set(names);
  for (const name of Object.keys(brokerSettings) as (keyof BrokerSettings)[]) {
    if (wanted !== undefined && !wanted.has(name)) continue;
    const synonyms = config.layers(name).map((layer) => ({ name, ...layer }));
    const setting = brokerSettings[name] as Setting<unknown>;
    entries.push(entry({ name, setting, synonyms, readOnly: !DYNAMIC.has(name) }));
  }
  for (const [name, layers] of config.listenerLayers()) {
    if (wanted !== undefined && !wanted.has(name)) continue;
    const setting = brokerSettings[baseOfListenerSetting(name)!] as Setting<unknown>;
    const synonyms = layers.map((layer) => ({ name, ...layer }));
    entries.push(entry({ name, setting, synonyms, readOnly: false }));
  }
  for (const { name, setting, value } of config.others) {
    if (wanted !== undefined && !wanted.has(name)) continue;
    const source = value === setting.format(setting.default) ? 'default' : 'staticBroker';
    const synonyms = [{ name, value, source: CONFIG_SOURCE[source] }];
    entries.push(entry({ name, setting, synonyms, readOnly: true }));
  }
  return entries;
}

/** What AlterConfigs set for the cluster as a whole, or those of `names`. */
export function describeClusterDefaults(
  config: BrokerConfig,
  names?: readonly string[] | null,
): ConfigEntry[] {
  return Object.entries(config.overrides(''))
    .filter(([name]) => names?.includes(name) ?? true)
    .map(([name, value]) => {
      const known = (baseOfListenerSetting(name) ?? name) as keyof BrokerSettings;
      const setting = brokerSettings[known] as Setting<unknown>;
      const synonyms = [{ name, value, source: CONFIG_SOURCE.dynamicDefault }];
      return entry({ name, setting, synonyms, readOnly: false });
    });
}

/** Every config of a group or client metrics subscription, or those of `names`; what isn't set has its default. */
export function describeResource(
  { resourceConfigs, config }: BrokerServices,
  { kind, name: resource }: { readonly kind: ResourceKind; readonly name: string },
  names?: readonly string[] | null,
): ConfigEntry[] {
  const { settings, source, synonyms: defaults } = RESOURCE_DEFINITIONS[kind];
  const own = resourceConfigs.of(kind, resource) ?? {};
  return Object.entries(settings)
    .filter(([name]) => names?.includes(name) ?? true)
    .map(([name, setting]) => {
      const synonyms: ConfigSynonym[] = [];
      if (own[name] !== undefined) synonyms.push({ name, value: own[name], source });
      const synonym = defaults[name];
      const value = (synonym && config.text(synonym)) ?? setting.format(setting.default);
      const isDefault = value === setting.format(setting.default);
      synonyms.push({
        name: synonym ?? name,
        value,
        source: isDefault ? CONFIG_SOURCE.default : CONFIG_SOURCE.staticBroker,
      });
      return entry({ name, setting, synonyms, readOnly: false });
    });
}

/** The levels of the broker's loggers. */
export function describeLoggers(
  { loggers }: BrokerServices,
  names?: readonly string[] | null,
): ConfigEntry[] {
  if (names != null && !names.includes(ROOT_LOGGER)) return [];
  return [
    {
      name: ROOT_LOGGER,
      value: loggers.shown,
      readOnly: false,
      configSource: CONFIG_SOURCE.dynamicLogger,
      isSensitive: false,
      synonyms: [],
      configType: UNKNOWN_TYPE,
      documentation: 'What is logged; back at log.level after a restart.',
    },
  ];
}

function entry(options: {
  readonly name: string;
  readonly setting: Setting<unknown>;
  readonly synonyms: readonly ConfigSynonym[];
  readonly readOnly: boolean;
}): ConfigEntry {
  const { name, setting, synonyms, readOnly } = options;
  const [first] = synonyms;
  const isSensitive = setting.type === 'password';
  return {
    name,
    value: isSensitive ? null : first!.value,
    readOnly,
    configSource: first!.source,
    isSensitive,
    synonyms: isSensitive ? synonyms.map((synonym) => ({ ...synonym, value: null })) : synonyms,
    configType: CONFIG_TYPE[setting.type],
    documentation:
      setting.valid === undefined ? setting.doc : `${setting.doc} Valid: ${setting.valid}.`,
  };
}

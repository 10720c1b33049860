// Configs as DescribeConfigs and CreateTopics show them: value, source, type, documentation, synonyms.
import type { Setting } from '../base/settings.ts';
import { type BrokerConfig, CONFIG_SOURCE, type ConfigLayer, DYNAMIC } from './broker-config.ts';
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
  for (const { name, setting, value } of config.others) {
    if (wanted !== undefined && !wanted.has(name)) continue;
    const source = value === setting.format(setting.default) ? 'default' : 'staticBroker';
    const synonyms = [{ name, value, source: CONFIG_SOURCE[source] }];
    entries.push(entry({ name, setting, synonyms, readOnly: true }));
  }
  return entries;
}

/** What AlterConfigs set for the cluster as a whole. */
export function describeClusterDefaults(config: BrokerConfig): ConfigEntry[] {
  return Object.entries(config.overrides('')).map(([name, value]) =>
    entry({
      name,
      setting: brokerSettings[name as keyof BrokerSettings] as Setting<unknown>,
      synonyms: [{ name, value, source: CONFIG_SOURCE.dynamicDefault }],
      readOnly: false,
    }),
  );
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

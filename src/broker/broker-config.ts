// The broker's settings in force: resolved at start, overlaid by what AlterConfigs changed since
// (one broker's over the whole cluster's), as in Kafka. Most settings are fixed at start; DYNAMIC lists the others.
import { isDeepStrictEqual } from 'node:util';
import { FloeError } from '../base/error.ts';
import { Mutex } from '../base/queue.ts';
import { findSetting, parseSetting, type Setting } from '../base/settings.ts';
import type { TopicsMetadata } from '../metadata/topics.ts';
import { compatSettings } from './compat-settings.ts';
import { type BrokerSettings, brokerSettings } from './settings.ts';

type Name = keyof BrokerSettings;
type Overrides = Readonly<Record<string, string>>;

/** Settings that may change while the broker runs: those that Kafka lets change, and some of Floe's own. */
export const DYNAMIC: ReadonlySet<string> = new Set<Name>([
  'message.max.bytes',
  'compression.type',
  'log.cleanup.policy',
  'log.retention.ms',
  'log.retention.bytes',
  'log.message.timestamp.type',
  'log.message.timestamp.before.max.ms',
  'log.message.timestamp.after.max.ms',
  'min.insync.replicas',
  'floe.read.only',
  'max.connections',
  'max.connections.per.ip',
  'max.connections.per.ip.overrides',
  'max.connection.creation.rate',
  'connections.max.idle.ms',
  'connection.max.requests',
  'request.share.factor',
  'connection.max.unsent.bytes',
  'connection.progress.timeout.ms',
  'fetch.max.wait.ms',
  'request.slow.ms',
  ...(Object.keys(compatSettings) as (keyof typeof compatSettings)[]),
]);

/** Settings that a listener may have of its own, as `listener.name.NAME.…`. */
const OF_LISTENER = ['max.connections', 'max.connection.creation.rate'] as const;

export type ListenerSetting = (typeof OF_LISTENER)[number];

/** Where a value comes from, in Kafka's numbers (DescribeConfigs `ConfigSource`). */
export const CONFIG_SOURCE = {
  topic: 1,
  dynamicBroker: 2,
  dynamicDefault: 3,
  staticBroker: 4,
  default: 5,
  dynamicLogger: 6,
  clientMetrics: 7,
  group: 8,
} as const;

export interface ConfigLayer {
  readonly source: number;
  readonly value: string;
}

/** A setting of another part of Floe, shown by DescribeConfigs and fixed while running. */
export interface ShownSetting {
  readonly name: string;
  readonly setting: Setting<unknown>;
  /** As text. */
  readonly value: string;
}

export interface BrokerConfigOptions {
  readonly settings: BrokerSettings;
  readonly nodeId: number;
  readonly store: TopicsMetadata;
  readonly others?: readonly ShownSetting[];
  /** Limits of single listeners given at start, by whole name: see {@link splitListenerLimits}. */
  readonly listenerLimits?: Overrides;
}

export class BrokerConfig {
  readonly nodeId: number;
  readonly others: readonly ShownSetting[];
  readonly #static: BrokerSettings;
  readonly #staticListeners: Overrides;
  readonly #store: TopicsMetadata;
  readonly #listeners = new Set<() => void>();
  /** What is read never replaces what was changed after. */
  readonly #turns = new Mutex();
  #cluster: Overrides = {};
  #own: Overrides = {};
  #values: BrokerSettings;
  /** What listeners have of their own, by the whole name. */
  #ofListeners: ReadonlyMap<string, number> = new Map();

  private constructor({ settings, nodeId, store, others, listenerLimits }: BrokerConfigOptions) {
    this.nodeId = nodeId;
    this.others = others ?? [];
    this.#static = settings;
    this.#staticListeners = listenerLimits ?? {};
    this.#store = store;
    this.#values = settings;
  }

  static async load(options: BrokerConfigOptions): Promise<BrokerConfig> {
    const { store, nodeId } = options;
    const config = new BrokerConfig(options);
    config.#cluster = await store.brokerConfig('');
    config.#own = await store.brokerConfig(String(nodeId));
    config.#overlay();
    return config;
  }

  get values(): BrokerSettings {
    return this.#values;
  }

  /** The value in force for a listener; without an own one there is no limit of its own. */
  listenerValue(listener: string, name: ListenerSetting): number {
    return this.#ofListeners.get(listenerSetting(listener, name)) ?? brokerSettings[name].default;
  }

  /** What was set for single listeners, by name. */
  listenerLayers(): ReadonlyMap<string, readonly ConfigLayer[]> {
    const found = new Map<string, ConfigLayer[]>();
    const scopes = [
      [CONFIG_SOURCE.dynamicBroker, this.#own],
      [CONFIG_SOURCE.dynamicDefault, this.#cluster],
      [CONFIG_SOURCE.staticBroker, this.#staticListeners],
    ] as const;
    for (const [source, overrides] of scopes) {
      for (const [name, value] of Object.entries(overrides)) {
        if (baseOfListenerSetting(name) === undefined) continue;
        found.set(name, [...(found.get(name) ?? []), { source, value }]);
      }
    }
    return found;
  }

  /** The value in force as text. */
  formatted(name: Name): string {
    return format(name, this.#values[name]);
  }

  /** The value in force of any setting, those of other parts included, as text; undefined for an unknown name. */
  text(name: string): string | undefined {
    if (Object.hasOwn(brokerSettings, name)) return this.formatted(name as Name);
    return this.others.find((other) => other.name === name)?.value;
  }

  /** Called after each change. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** The values of a setting from the one in force down to the default. */
  layers(name: Name): readonly ConfigLayer[] {
    const layers: ConfigLayer[] = [];
    const own = this.#own[name];
    if (own !== undefined) layers.push({ source: CONFIG_SOURCE.dynamicBroker, value: own });
    const cluster = this.#cluster[name];
    if (cluster !== undefined)
      layers.push({ source: CONFIG_SOURCE.dynamicDefault, value: cluster });
    const fixed = format(name, this.#static[name]);
    const standard = format(name, brokerSettings[name].default);
    if (fixed !== standard) layers.push({ source: CONFIG_SOURCE.staticBroker, value: fixed });
    layers.push({ source: CONFIG_SOURCE.default, value: standard });
    return layers;
  }

  /** What AlterConfigs set for one broker (its id as text) or the whole cluster (''). */
  overrides(scope: string): Overrides {
    return scope === '' ? this.#cluster : this.#own;
  }

  /** Checks changes, null meaning removal; proper names back. @throws FloeError `invalid`. */
  check(changes: Readonly<Record<string, string | null>>): Record<string, string | null> {
    const proper: Record<string, string | null> = {};
    for (const [name, value] of Object.entries(changes)) {
      // Tools take back throttles and the like without knowing whether they are there.
      if (value === null && !isKnown(name)) continue;
      const [properName, setting] = this.#findDynamic(name);
      if (value !== null) parseSetting(name, setting, value);
      proper[properName] = value;
    }
    return proper;
  }

  /** Stores checked changes, then uses them. */
  async alter(scope: string, changes: Readonly<Record<string, string | null>>): Promise<void> {
    await this.#turns.run(async () => {
      const stored = await this.#store.alterBrokerConfig(scope, changes);
      if (scope === '') this.#use(stored, this.#own);
      else if (scope === String(this.nodeId)) this.#use(this.#cluster, stored);
    });
  }

  /** Takes over what other nodes have changed. */
  async refresh(): Promise<void> {
    await this.#turns.run(async () => {
      const cluster = await this.#store.brokerConfig('');
      this.#use(cluster, await this.#store.brokerConfig(String(this.nodeId)));
    });
  }

  #use(cluster: Overrides, own: Overrides): void {
    if (isDeepStrictEqual([cluster, own], [this.#cluster, this.#own])) return;
    this.#cluster = cluster;
    this.#own = own;
    this.#overlay();
    for (const listener of this.#listeners) listener();
  }

  /** A setting that may change now, with its proper name. @throws FloeError `invalid`. */
  #findDynamic(name: string): readonly [string, Setting<unknown>] {
    const base = baseOfListenerSetting(name);
    if (base !== undefined) return [name, brokerSettings[base] as Setting<unknown>];
    const found = findSetting(brokerSettings, name);
    if (found !== undefined && DYNAMIC.has(found[0])) return found;
    if (found === undefined && this.text(name) === undefined) {
      const remedy = 'DescribeConfigs of a broker lists the names';
      throw new FloeError('invalid', `unknown broker config "${name}": ${remedy}`);
    }
    throw new FloeError(
      'invalid',
      `"${name}" can't change while the broker runs: set it with --set and restart`,
    );
  }

  #overlay(): void {
    const values: Record<string, unknown> = { ...this.#static };
    const ofListeners = new Map<string, number>();
    const texts = { ...this.#staticListeners, ...this.#cluster, ...this.#own };
    for (const [name, text] of Object.entries(texts)) {
      const found = findSetting(brokerSettings, name);
      if (found !== undefined) values[found[0]] = found[1].parse(text);
      const base = baseOfListenerSetting(name);
      if (base !== undefined) ofListeners.set(name, brokerSettings[base].parse(text));
    }
    this.#values = values as BrokerSettings;
    this.#ofListeners = ofListeners;
  }
}

/** `listener.name.NAME.…`, the listener in lower case as Kafka has it. */
const listenerSetting = (listener: string, name: ListenerSetting) =>
  `listener.name.${listener.toLowerCase()}.${name}`;

/**
 * Takes `listener.name.NAME.max.connections` and the like out of settings given at start.
 * @throws FloeError `invalid` for a bad value.
 */
export function splitListenerLimits(given: Overrides): {
  readonly limits: Overrides;
  readonly others: Overrides;
} {
  const limits: Record<string, string> = {};
  const others: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    const base = baseOfListenerSetting(name.toLowerCase());
    if (base === undefined) others[name] = value;
    else {
      parseSetting(name, brokerSettings[base] as Setting<unknown>, value);
      limits[name.toLowerCase()] = value;
    }
  }
  return { limits, others };
}

/** What a listener's setting is one of, or undefined for another name. */
export function baseOfListenerSetting(name: string): ListenerSetting | undefined {
  const [, base] = /^listener\.name\.[a-z0-9_-]+\.(.+)$/.exec(name) ?? [];
  return OF_LISTENER.find((candidate) => candidate === base);
}

const isKnown = (name: string) =>
  findSetting(brokerSettings, name) !== undefined || baseOfListenerSetting(name) !== undefined;

function format(name: Name, value: unknown): string {
  return (brokerSettings[name] as { format(value: unknown): string }).format(value);
}

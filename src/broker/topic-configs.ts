// Topic configs: Kafka's, with Floe's defaults from the broker's settings, plus those that an extension brings
// (table.topic.*, injected by the composition root). Unknown or invalid ones are refused naming key, value, remedy.
// Not for: acting on them (Produce reads its part through `policy`, the log gets retention from the composition root).
import { FloeError } from '../base/error.ts';
import { findSetting, parseSetting, type Setting, type Settings } from '../base/settings.ts';
import { QUARANTINE_CONFIG, quarantinedPartitions } from '../metadata/quarantine.ts';
import type { Topic } from '../metadata/topics.ts';
import type { BrokerConfig } from './broker-config.ts';
import { type OperatorStop, type StopPolicy, writeStop } from './operator-stops.ts';
import { defaultRetentionMs } from './settings.ts';
import { BROKER_SYNONYMS, topicSettings } from './topic-settings.ts';

/** The configs of a topic as they would be after a change. */
export interface TopicConfigChange {
  readonly topicName: string;
  /** Undefined for a topic about to be created. */
  readonly topic: Topic | undefined;
  /** Everything set after the change, under proper names. */
  readonly config: Readonly<Record<string, string>>;
  /** Whether who changes it may write into a topic of that name: a config may name one. */
  readonly mayWrite: (topicName: string) => boolean;
}

/** Further topic configs, brought by another part of Floe through the composition root. */
export interface TopicConfigExtension {
  readonly definitions: Settings;
  /**
   * For families of names without end (`x.properties.*`): name and definition for `name`, or undefined.
   * @throws FloeError `invalid` for a name that is understood and refused, saying what to use instead.
   */
  find?(name: string): readonly [string, Setting<unknown>] | undefined;
  /** @throws FloeError `invalid` when the values do not go together, or not with the world. */
  validate?(change: TopicConfigChange): Promise<void>;
}

/** What admission needs to know of a topic. */
export interface TopicPolicy extends StopPolicy {
  readonly maxMessageBytes: number;
  readonly timestampType: 'CreateTime' | 'LogAppendTime';
  readonly keysRequired: boolean;
  readonly timestampBeforeMaxMs: number;
  readonly timestampAfterMaxMs: number;
}

export class TopicConfigs {
  readonly #broker: BrokerConfig;
  readonly #extensions: readonly TopicConfigExtension[];
  #policies = new WeakMap<Topic, TopicPolicy>();

  constructor(broker: BrokerConfig, extensions: readonly TopicConfigExtension[]) {
    this.#broker = broker;
    this.#extensions = extensions;
    broker.onChange(() => {
      this.#policies = new WeakMap();
    });
  }

  /** All definitions with an ending, by name. */
  definitions(): Settings {
    return Object.assign({}, topicSettings, ...this.#extensions.map((e) => e.definitions));
  }

  /** Proper name and definition; @throws FloeError `invalid` for an unknown or refused name. */
  find(name: string): readonly [string, Setting<unknown>] {
    const found = findSetting(topicSettings, name) ?? this.#findExtension(name);
    if (found !== undefined) return found;
    throw new FloeError(
      'invalid',
      `unknown topic config "${name}": DescribeConfigs of a topic lists the names`,
    );
  }

  #findExtension(name: string): readonly [string, Setting<unknown>] | undefined {
    for (const extension of this.#extensions) {
      const found = findSetting(extension.definitions, name) ?? extension.find?.(name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /**
   * Checks changes of a topic's configs, null meaning removal.
   * @returns the changes under their proper names. @throws FloeError `invalid`.
   */
  async check(
    topic: Topic | { readonly name: string },
    changes: Readonly<Record<string, string | null>>,
    mayWrite: TopicConfigChange['mayWrite'],
  ): Promise<Record<string, string | null>> {
    const proper: Record<string, string | null> = {};
    for (const [name, value] of Object.entries(changes)) {
      const [properName, setting] = this.find(name);
      if (value !== null) parseSetting(properName, setting, value);
      proper[properName] = value;
    }
    const existing = 'topicId' in topic ? topic : undefined;
    const config = applyChanges(existing?.config ?? {}, proper);
    this.#checkLags(config);
    for (const extension of this.#extensions) {
      await extension.validate?.({ topicName: topic.name, topic: existing, config, mayWrite });
    }
    return proper;
  }

  #checkLags(config: Readonly<Record<string, string>>): void {
    const least = this.effective(config, 'min.compaction.lag.ms');
    const most = this.effective(config, 'max.compaction.lag.ms');
    if (Number(least) <= Number(most)) return;
    throw new FloeError(
      'invalid',
      `min.compaction.lag.ms (${least}) is above max.compaction.lag.ms (${most}): lower one or raise the other`,
    );
  }

  /** The value in force as text: the topic's own, the broker's, or the definition's default. */
  effective(config: Readonly<Record<string, string>>, name: string): string {
    const own = config[name];
    return own ?? this.brokerDefault(name);
  }

  /** The value of a topic that doesn't set `name`, as text. */
  brokerDefault(name: string): string {
    if (name === 'retention.ms') return String(defaultRetentionMs(this.#broker.values));
    const synonym = BROKER_SYNONYMS[name];
    if (synonym !== undefined) return this.#broker.formatted(synonym);
    const [, setting] = this.find(name);
    return setting.format(setting.default);
  }

  /** What admission needs, parsed once per version of a topic. */
  policy(topic: Topic): TopicPolicy {
    let policy = this.#policies.get(topic);
    if (policy === undefined) {
      policy = this.#parsePolicy(topic);
      this.#policies.set(topic, policy);
    }
    return policy;
  }

  /** Cheap enough for every partition of a Fetch: most topics don't have the config. */
  isQuarantined(topic: Topic, index: number): boolean {
    return (
      topic.config[QUARANTINE_CONFIG] !== undefined && this.policy(topic).quarantined.has(index)
    );
  }

  /** Why partition `index` takes no records now; undefined where it does. */
  writeStop(topic: Topic, index: number): OperatorStop | undefined {
    return writeStop(topic, index, this.policy(topic));
  }

  #parsePolicy(topic: Topic): TopicPolicy {
    const { config } = topic;
    const value = <N extends keyof typeof topicSettings>(name: N) =>
      topicSettings[name].parse(this.effective(config, name)) as ReturnType<
        (typeof topicSettings)[N]['parse']
      >;
    return {
      maxMessageBytes: value('max.message.bytes'),
      timestampType: value('message.timestamp.type'),
      keysRequired: value('cleanup.policy').includes('compact'),
      timestampBeforeMaxMs: value('message.timestamp.before.max.ms'),
      timestampAfterMaxMs: value('message.timestamp.after.max.ms'),
      readOnly: value('floe.read.only'),
      quarantined: quarantinedPartitions(topic),
    };
  }
}

/** `config` with `changes` applied; null removes. */
function applyChanges(
  config: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const result = { ...config };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete result[name];
    else result[name] = value;
  }
  return result;
}

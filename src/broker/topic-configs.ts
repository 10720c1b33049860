// Topic configs: Kafka's, with Floe's defaults from the broker's settings, plus those that an extension brings
// (table.topic.*, injected by the composition root). Unknown or invalid ones are refused naming key, value, remedy.
// Not for: acting on them (Produce reads its part through `policy`, the log gets retention from the composition root).
import { FloeError } from '../base/error.ts';
import {
  bool,
  double,
  findSetting,
  int,
  list,
  long,
  oneOf,
  parseSetting,
  type Setting,
  type Settings,
  text,
} from '../base/settings.ts';
import type { Topic } from '../metadata/topics.ts';
import type { BrokerConfig } from './broker-config.ts';
import { type BrokerSettings, defaultRetentionMs, hugeLong, LONG_MAX } from './settings.ts';

/** A config kept and shown for compatibility; the log has no segments, replicas or page flushes it could steer. */
const noEffect = 'Accepted for compatibility; without effect, since the log has no ';

/** Kafka's topic configs by name. */
export const topicSettings = {
  'cleanup.policy': list({
    default: ['delete'],
    values: ['delete', 'compact'],
    doc: 'delete: records past retention go. compact: records need a key; the newest of a key is kept.',
  }),
  'retention.ms': long({
    default: 604_800_000,
    min: -1,
    doc: 'How long records are kept, −1 for ever.',
  }),
  'retention.bytes': long({ default: -1, min: -1, doc: 'Bytes kept per partition, −1: no limit.' }),
  'max.message.bytes': int({
    default: 1_048_588,
    min: 0,
    doc: 'Largest record batch as sent, after compression.',
  }),
  'message.timestamp.type': oneOf(['CreateTime', 'LogAppendTime'], {
    default: 'CreateTime',
    doc: 'CreateTime keeps the producer’s; LogAppendTime is the time of admission at this broker.',
  }),
  'message.timestamp.before.max.ms': hugeLong({
    default: LONG_MAX,
    min: 0,
    doc: 'How far a timestamp may lie in the past.',
  }),
  'message.timestamp.after.max.ms': hugeLong({
    default: 3_600_000,
    min: 0,
    doc: 'How far a timestamp may lie in the future.',
  }),
  'compression.type': oneOf(['producer', 'gzip', 'snappy', 'lz4', 'zstd', 'uncompressed'], {
    default: 'producer',
    doc: 'Every value acts as producer: batches are kept as the producer compressed them.',
  }),
  'delete.retention.ms': long({
    default: 86_400_000,
    min: 0,
    doc: 'How long tombstones outlive compaction.',
  }),
  'min.compaction.lag.ms': long({
    default: 0,
    min: 0,
    doc: 'How long a record stays uncompacted at least.',
  }),
  'max.compaction.lag.ms': hugeLong({
    default: LONG_MAX,
    min: 1,
    doc: 'How long a record may stay uncompacted at most.',
  }),
  'min.cleanable.dirty.ratio': double({
    default: 0.5,
    min: 0,
    max: 1,
    doc: 'Share of a partition that may be superseded before compaction.',
  }),
  'min.insync.replicas': int({
    default: 1,
    min: 1,
    doc: 'Accepted for compatibility: an acknowledged batch is durable whatever its value.',
  }),
  'segment.bytes': int({ default: 1_073_741_824, min: 14, doc: `${noEffect}segments.` }),
  'segment.ms': long({ default: 604_800_000, min: 1, doc: `${noEffect}segments.` }),
  'segment.jitter.ms': long({ default: 0, min: 0, doc: `${noEffect}segments.` }),
  'segment.index.bytes': int({ default: 10_485_760, min: 4, doc: `${noEffect}segments.` }),
  'index.interval.bytes': int({ default: 4_096, min: 0, doc: `${noEffect}segments.` }),
  'flush.messages': hugeLong({
    default: LONG_MAX,
    min: 1,
    doc: 'Accepted for compatibility: every acknowledged batch is flushed already.',
  }),
  'flush.ms': hugeLong({
    default: LONG_MAX,
    min: 0,
    doc: 'Accepted for compatibility: every acknowledged batch is flushed already.',
  }),
  'file.delete.delay.ms': long({ default: 60_000, min: 0, doc: `${noEffect}segments.` }),
  preallocate: bool({ default: false, doc: `${noEffect}segments.` }),
  'unclean.leader.election.enable': bool({ default: false, doc: `${noEffect}replicas.` }),
  'leader.replication.throttled.replicas': text({ default: '', doc: `${noEffect}replicas.` }),
  'follower.replication.throttled.replicas': text({ default: '', doc: `${noEffect}replicas.` }),
  'compression.gzip.level': int({ default: -1, min: -1, max: 9, doc: `${noEffect}recompression.` }),
  'compression.lz4.level': int({ default: 9, min: 1, max: 17, doc: `${noEffect}recompression.` }),
  'compression.zstd.level': int({
    default: 3,
    min: -131_072,
    max: 22,
    doc: `${noEffect}recompression.`,
  }),
} as const satisfies Settings;

/** Which broker setting a topic config takes its default from. */
export const BROKER_SYNONYMS: Readonly<Record<string, keyof BrokerSettings>> = {
  'cleanup.policy': 'log.cleanup.policy',
  'retention.ms': 'log.retention.ms',
  'retention.bytes': 'log.retention.bytes',
  'max.message.bytes': 'message.max.bytes',
  'message.timestamp.type': 'log.message.timestamp.type',
  'message.timestamp.before.max.ms': 'log.message.timestamp.before.max.ms',
  'message.timestamp.after.max.ms': 'log.message.timestamp.after.max.ms',
  'compression.type': 'compression.type',
  'min.insync.replicas': 'min.insync.replicas',
};

/** The configs of a topic as they would be after a change. */
export interface TopicConfigChange {
  readonly topicName: string;
  /** Undefined for a topic about to be created. */
  readonly topic: Topic | undefined;
  /** Everything set after the change, under proper names. */
  readonly config: Readonly<Record<string, string>>;
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
export interface TopicPolicy {
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
  ): Promise<Record<string, string | null>> {
    const proper: Record<string, string | null> = {};
    for (const [name, value] of Object.entries(changes)) {
      const [properName, setting] = this.find(name);
      if (value !== null) parseSetting(properName, setting, value);
      proper[properName] = value;
    }
    const existing = 'topicId' in topic ? topic : undefined;
    const config = applyChanges(existing?.config ?? {}, proper);
    for (const extension of this.#extensions) {
      await extension.validate?.({ topicName: topic.name, topic: existing, config });
    }
    return proper;
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
      policy = this.#parsePolicy(topic.config);
      this.#policies.set(topic, policy);
    }
    return policy;
  }

  #parsePolicy(config: Readonly<Record<string, string>>): TopicPolicy {
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

// Which subject a topic's schemas are registered under, and which message of a Protobuf file its values are.
// Source: Confluent documentation, "Subject name strategy".
import { FloeError } from '../../base/error.ts';
import type { TopicConfigs } from '../settings/index.ts';
import { sourceFormat } from './formats.ts';
import type { SchemaText, Side } from './source.ts';

interface Topic {
  readonly topicName: string;
  readonly config: TopicConfigs;
}

/** The subject that is known without a record: the configured one, or the topic's. */
export function fixedSubject({ topicName, config }: Topic, side: Side): string {
  const configured = config[`table.topic.convert.${side}.by_latest_schema.subject`];
  const latest = config[`table.topic.convert.${side}.type`] === 'by_latest_schema';
  return latest && configured !== '' ? configured : `${topicName}-${side}`;
}

/** The subject of a schema by the topic's strategy; undefined when it takes a record name and there is none. */
export function subjectOf(text: SchemaText, topic: Topic, side: Side): string | undefined {
  const strategy = topic.config['table.topic.subject.name.strategy'];
  if (strategy === 'topic') return `${topic.topicName}-${side}`;
  const name = text.message ?? sourceFormat(text.type).messages(text)[0];
  if (name === undefined) return undefined;
  return strategy === 'record' ? name : `${topic.topicName}-${name}`;
}

/**
 * The message of bare values: the configured one, or the only one.
 * @throws FloeError `invalid` when there are several to choose from, or not the configured one.
 */
export function latestMessage(text: SchemaText, config: TopicConfigs, side: Side): SchemaText {
  const format = sourceFormat(text.type);
  if (!format.hasMessages) return text;
  const name = `table.topic.convert.${side}.by_latest_schema.message.full.name` as const;
  const names = format.messages(text);
  const wanted = config[name];
  if (wanted !== '') return { ...text, message: wanted };
  if (names.length === 1) return { ...text, message: names[0]! };
  throw new FloeError(
    'invalid',
    `the schema has several messages (${names.slice(0, 10).join(', ')}): set ${name} to one of them`,
  );
}

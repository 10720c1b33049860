// Configs of what happens to records that can't be rows. Not for: incompatible types (evolution.ts).
import { oneOf, type Settings, text, type Values } from '../../base/settings.ts';
import type { Refusals } from './theme.ts';

export const configs = {
  'table.topic.errors.tolerance': oneOf(['dlq_table', 'dlq_topic', 'skip', 'none'], {
    default: 'dlq_table',
    doc: 'What happens to a record that can’t be a row: kept with reason and raw bytes in <table>_dlq; appended, once, to the topic that table.topic.errors.dlq.topic names; counted and skipped; or none: this table is suspended until it is cured.',
  }),
  'table.topic.errors.dlq.topic': text({
    default: '',
    pattern: /^(?!\.{1,2}$)[A-Za-z0-9._-]{0,249}$/,
    wanted: 'a topic name: up to 249 letters, digits, ".", "_" and "-"',
    doc: 'Topic of dead letters for table.topic.errors.tolerance=dlq_topic; created with one partition when missing. Empty: <topic>-dlq. Key, value, headers and timestamp are the record’s; headers under Kafka Connect’s names (__connect.errors.*) and __floe.error.* say where it came from and why.',
  }),
} as const satisfies Settings;

export const unserved: Refusals = {
  'automq.table.topic.errors.tolerance':
    'its values invalid_data and all mean something else: set table.topic.errors.tolerance to dlq_table, dlq_topic, skip or none',
};

/** The topic that dead letters of a topic go to. */
export function letterTopicName(topicName: string, config: Values<typeof configs>): string {
  return config['table.topic.errors.dlq.topic'] || `${topicName}-dlq`;
}

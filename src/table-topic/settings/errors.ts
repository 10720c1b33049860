// Configs of what happens to records that can't be rows. Not for: incompatible types (evolution.ts).
import { oneOf, type Settings } from '../../base/settings.ts';
import type { Refusals } from './theme.ts';

export const configs = {
  'table.topic.errors.tolerance': oneOf(['dlq_table', 'skip', 'none'], {
    default: 'dlq_table',
    doc: 'What happens to a record that can’t be a row: kept with reason and raw bytes in <table>_dlq, counted and skipped, or none: this table is suspended until it is cured.',
  }),
} as const satisfies Settings;

export const unserved: Refusals = {
  'automq.table.topic.errors.tolerance':
    'its values invalid_data and all mean something else: set table.topic.errors.tolerance to dlq_table, skip or none',
};

export const unservedValues: Readonly<Record<string, Refusals>> = {
  'table.topic.errors.tolerance': {
    dlq_topic: 'dlq_topic is not served yet: use dlq_table, skip or none',
  },
};

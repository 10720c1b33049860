// Configs of how a table's schema follows the records.
import { oneOf, type Settings } from '../../base/settings.ts';

export const configs = {
  'table.topic.evolution.incompatible': oneOf(['new_column', 'suspend', 'dlq'], {
    default: 'new_column',
    doc: 'What happens when a field takes a type that Iceberg can’t widen to: a further column <name>__<type>, suspend this table, or such records go the way of errors.tolerance.',
  }),
} as const satisfies Settings;

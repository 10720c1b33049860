// Configs of upserts and change data capture.
import type { Settings } from '../../base/settings.ts';
import type { Refusals } from './theme.ts';

export const configs = {} as const satisfies Settings;

export const unserved: Refusals = {
  'table.topic.upsert.enable': 'upserts are not served yet: tables are append-only',
  'table.topic.id.columns': 'upserts are not served yet: tables are append-only',
  'table.topic.id.null': 'upserts are not served yet: tables are append-only',
  'table.topic.cdc.field': 'change data capture is not served yet: tables are append-only',
  'automq.table.topic.id.columns': 'upserts are not served yet: tables are append-only',
  'automq.table.topic.upsert.enable': 'upserts are not served yet: tables are append-only',
  'automq.table.topic.cdc.field': 'change data capture is not served yet: tables are append-only',
};

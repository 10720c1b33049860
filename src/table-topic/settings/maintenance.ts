// Configs of a table's upkeep: compaction, snapshot expiry, orphans, statistics.
import type { Settings } from '../../base/settings.ts';
import type { Refusals } from './theme.ts';

export const configs = {} as const satisfies Settings;

export const unserved: Refusals = {
  'table.topic.expire.snapshot.enable': 'snapshot expiry by Floe is not served yet',
  'table.topic.expire.snapshot.older.than.hours': 'snapshot expiry by Floe is not served yet',
  'table.topic.expire.snapshot.retain.last': 'snapshot expiry by Floe is not served yet',
  'table.topic.compact.min.input.files': 'table compaction is not served yet',
  'table.topic.compact.target.file.bytes': 'table compaction is not served yet',
  'table.topic.compact.interval.ms': 'table compaction is not served yet',
  'automq.table.topic.expire.snapshot.enabled':
    'it expires within the commit: snapshot expiry by Floe is not served yet',
  'automq.table.topic.expire.snapshot.older.than.hours':
    'snapshot expiry by Floe is not served yet',
  'automq.table.topic.expire.snapshot.retain.last': 'snapshot expiry by Floe is not served yet',
};

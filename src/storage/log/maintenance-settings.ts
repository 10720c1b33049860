// Settings of the log's background work: retention, compaction, collection. Each says why its default is what it is.
import { bool, int, long } from '../../base/settings.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const MINUTE_MS = 60_000;

export const maintenanceSettings = {
  'log.retention.check.interval.ms': long({
    default: 5 * MINUTE_MS,
    min: 1,
    doc: 'How often retention is applied. Kafka’s default.',
  }),
  'log.collect.interval.ms': long({
    default: 30_000,
    min: 1,
    doc: 'How often unreferenced objects are looked for and deleted.',
  }),
  'log.sweep.interval.ms': long({
    default: 60 * MINUTE_MS,
    min: 1,
    doc: 'How often orphans of dead writers are looked for.',
  }),
  'log.delete.grace.ms': long({
    default: MINUTE_MS,
    min: 0,
    doc: 'Unreferenced objects keep their bytes this long, so that readers finish. Where metadata is restored from backups, at least the time between two of them.',
  }),
  'log.orphan.age.ms': long({
    default: 60 * MINUTE_MS,
    min: 1,
    doc: 'A key that no commit refers to is an orphan at this age; far longer than any write may take.',
  }),
  'log.compact.interval.ms': long({
    default: 5_000,
    min: 1,
    doc: 'How often compaction looks for work.',
  }),
  'log.compact.age.ms': long({
    default: 30_000,
    min: 0,
    doc: 'Objects younger than this are not rewritten: their readers still find them in memory.',
  }),
  'log.compact.object.bytes': long({
    default: 32 * MIB,
    min: 64 * KIB,
    max: 1024 * MIB,
    doc: 'Size of the objects that compaction writes; that much memory is held while it works.',
  }),
  'log.compact.block.bytes': long({
    default: 512 * KIB,
    min: 4 * KIB,
    max: 16 * MIB,
    doc: 'Size of a block, which is read by one call.',
  }),
  'log.compact.small.run.bytes': long({
    default: 16 * KIB,
    min: 0,
    doc: 'Write-ahead files whose runs are shorter than this on average are rewritten. Producers at full speed leave longer ones.',
  }),
  'log.compact.small.share.bytes': long({
    default: 256 * KIB,
    min: 0,
    doc: 'Objects with less than this of each partition on average are merged, so that a partition reads back in large calls.',
  }),
  'log.compact.store.share.bytes': long({
    default: 8 * MIB,
    min: 0,
    doc: 'S3: the same; a read of a store costs as much money and time as 4 MiB do, and the last one of a share is seldom full.',
  }),
  'log.compact.gather.ms': long({
    default: 60_000,
    min: 0,
    doc: 'S3: objects of single flushes become a stream object when they fill one, or at this age. Sooner: more requests. Later: more of them to read one by one, for those who come late.',
  }),
  'log.compact.fan.in': int({
    default: 8,
    min: 2,
    max: 64,
    doc: 'Objects merged at once. More: fewer rewrites, later.',
  }),
  'log.compact.busy.bytes': long({
    default: 32 * MIB,
    min: 1,
    doc: 'While more bytes per second than this are produced, compaction of local files waits: the disk and the cores are theirs. On S3 it goes on, or reads would cost ever more.',
  }),
  'log.compact.rate.bytes': long({
    default: 48 * MIB,
    min: 64 * KIB,
    doc: 'Bytes per second that a node’s compaction writes at most.',
  }),
  'log.cleaner.enable': bool({
    default: true,
    doc: 'Compact topics with cleanup.policy=compact by key.',
  }),
  'log.cleaner.backoff.ms': long({
    default: 5_000,
    min: 1,
    doc: 'How often compacted topics are looked at for what is due. Sooner than Kafka’s 15 s: a look is a few queries.',
  }),
  'log.cleaner.dedupe.buffer.size': long({
    default: 32 * MIB,
    min: 24 * KIB,
    max: 4096 * MIB,
    doc: 'Most memory for the keys of the partition that is being compacted, 24 bytes a key and a fifth left free; taken as needed, given back at the end. Keys that find no room wait for the next pass.',
  }),
  'log.cleaner.io.max.bytes.per.second': long({
    default: 32 * MIB,
    min: 64 * KIB,
    doc: 'Bytes per second that compaction by key reads at most; a quarter of it while producers press (log.compact.busy.bytes), so that it never stands still.',
  }),
};

// Settings of the log's read side. Sizes were measured on two cores; each says why.
import { int, long, type Values } from '../../base/settings.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

export const readSettings = {
  'log.read.cache.bytes': long({
    default: 64 * MIB,
    min: 1 * MIB,
    max: 64 * 1024 * MIB,
    doc: 'Shared memory for blocks that consumers read from storage. A consumer that catches up on 16 partitions holds 48 MiB: a reply under way and what is read ahead.',
  }),
  'log.read.cold.cache.bytes': long({
    default: 16 * MIB,
    min: 1 * MIB,
    max: 64 * 1024 * MIB,
    doc: 'The same for tables and maintenance, apart, so that their scans never evict what consumers read.',
  }),
  'log.read.index.bytes': long({
    default: 32 * MIB,
    min: 1 * MIB,
    doc: 'Indexes of sealed and compacted objects kept in memory.',
  }),
  'log.read.recent.index.bytes': long({
    default: 64 * MIB,
    min: 64 * KIB,
    doc: 'Index of the newest flushes kept in memory, 40 bytes an entry; beyond it the oldest are read from the metadata store.',
  }),
  'log.read.range.bytes': long({
    default: 1 * MIB,
    min: 64 * KIB,
    max: 64 * MIB,
    doc: 'Largest read call of local files: as much as two read calls of a spinning disk cost.',
  }),
  'log.read.gap.bytes': long({
    default: 16 * KIB,
    min: 0,
    max: 16 * MIB,
    doc: 'Neighbours this close are read together: skipping costs more than reading the gap.',
  }),
  'log.read.ahead.bytes': long({
    default: 2 * MIB,
    min: 0,
    max: 256 * MIB,
    doc: 'How many bytes are loaded ahead of a sequential reader; partitions that lie mixed share blocks. 0: none. Reading ahead never takes the memory of what others read ahead.',
  }),
  'log.read.store.range.bytes': long({
    default: 4 * MIB,
    min: 64 * KIB,
    max: 64 * MIB,
    doc: 'S3: size of a read of compacted objects. A GET costs 30 ms and the same money whatever it brings; past a few MiB its bytes take longer than that.',
  }),
  'log.read.store.gap.bytes': long({
    default: 256 * KIB,
    min: 0,
    max: 16 * MIB,
    doc: 'S3: neighbours this close are read together.',
  }),
  'log.read.store.ahead.bytes': long({
    default: 8 * MIB,
    min: 0,
    max: 256 * MIB,
    doc: 'S3: how many bytes are loaded ahead of a sequential reader: a read under way while another is consumed.',
  }),
  'log.read.store.cache.bytes': long({
    default: 96 * MIB,
    min: 1 * MIB,
    max: 64 * 1024 * MIB,
    doc: 'S3: shared memory for blocks that consumers read from storage; reads ahead are longer than those of local files.',
  }),
  'log.read.store.cold.cache.bytes': long({
    default: 64 * MIB,
    min: 1 * MIB,
    max: 64 * 1024 * MIB,
    doc: 'S3: shared memory for blocks that tables read; theirs are larger than those of local files. Taken as used.',
  }),
  'log.read.chunk.bytes': long({
    default: 4 * MIB,
    min: 64 * KIB,
    max: 64 * MIB,
    doc: 'S3: objects of single flushes are read in pieces of this size, which serve all partitions of this node, and of its zone.',
  }),
  'log.read.chunk.cache.bytes': long({
    default: 64 * MIB,
    min: 1 * MIB,
    max: 64 * 1024 * MIB,
    doc: 'S3: such pieces kept in memory: some seconds of what all brokers write, as readers at the tail are no further behind.',
  }),
  'log.zone.deadline.ms': int({
    default: 300,
    min: 1,
    max: 60_000,
    doc: 'S3: a node of the same rack that reads an object for all is waited for this long; then the store is asked, which takes about 30 ms itself.',
  }),
  'log.read.crc.sample': int({
    default: 32,
    min: 1,
    max: 1_000_000,
    doc: 'One in so many blocks read from local files has the CRC of all its batches checked; headers always are. 1: every one, as what comes from S3 always has: a network may turn bits that its checksums miss.',
  }),
};

/** The settings of either kind of store under the names of local files; `remote` as PlanLimits have it. */
export type ReadLimits = Values<typeof readSettings> & {
  readonly remote?: { readonly minRange: number; readonly restShare: number };
};

/** A rest of less than half a read comes along with the read before it. */
const REST_SHARE = 0.5;

/** The settings as they hold for reads of a store that is asked over the network (`stored`), or of local files. */
export function readsOf(settings: Values<typeof readSettings>, stored: boolean): ReadLimits {
  if (!stored) return settings;
  return {
    ...settings,
    'log.read.range.bytes': settings['log.read.store.range.bytes'],
    'log.read.gap.bytes': settings['log.read.store.gap.bytes'],
    'log.read.ahead.bytes': settings['log.read.store.ahead.bytes'],
    'log.read.cache.bytes': settings['log.read.store.cache.bytes'],
    'log.read.cold.cache.bytes': settings['log.read.store.cold.cache.bytes'],
    'log.read.crc.sample': 1,
    remote: { minRange: settings['log.read.store.range.bytes'], restShare: REST_SHARE },
  };
}

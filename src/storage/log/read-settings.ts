// Settings of the log's read side. Sizes were measured on two cores; each says why.
import { int, long } from '../../base/settings.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

export const readSettings = {
  'log.read.cache.bytes': long({
    default: 96 * MIB,
    min: 1 * MIB,
    max: 64 * 1024 * MIB,
    doc: 'Shared memory for blocks that consumers read from storage. A consumer that catches up on 16 partitions holds about 75 MiB: a reply under way and what is read ahead.',
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
    doc: 'Largest read call. Local: as much as two read calls of a spinning disk cost. S3: 8 MiB is better, as a GET costs 30 ms whatever its size.',
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
  'log.read.crc.sample': int({
    default: 32,
    min: 1,
    max: 1_000_000,
    doc: 'One in so many blocks read from storage has the CRC of all its batches checked; headers always are. 1: every one.',
  }),
};

// Settings of the log's write path. Sizes are starting points that were measured on two cores; each says why.
import { bool, double, int, long } from '../../base/settings.ts';

const MIB = 1024 * 1024;

export const logSettings = {
  'log.slab.bytes': long({
    default: 8 * MIB,
    min: 64 * 1024,
    max: 64 * MIB,
    doc: 'Size of a slab, the shared memory that batches are copied into. The largest batch must fit; on S3 a full slab is one object.',
  }),
  'log.slab.count': int({
    default: 12,
    min: 3,
    max: 512,
    doc: 'Slabs in the fixed pool: those being filled and written, those that readers hold, and the tail cache.',
  }),
  'log.tail.bytes': long({
    default: 40 * MIB,
    min: 0,
    doc: 'Newest committed bytes kept in slabs for consumers at the tail. Cut to what the pool can spare.',
  }),
  'log.in.flight.bytes': long({
    default: 24 * MIB,
    min: 1 * MIB,
    doc: 'Admitted bytes that are not yet committed. Past it, sockets with Produce pending are not read; nothing is dropped. What a broker takes in over an object store is bounded by it: docs/operations/sizing.md. Raise log.slab.count with it.',
  }),
  'log.read.copy.bytes': long({
    default: 32 * MIB,
    min: 64 * 1024,
    doc: 'Slow consumers hold at most as many slabs as leaves producers what log.in.flight.bytes needs; further reads get copies, at most this many bytes of them at once, then one batch each.',
  }),
  'log.wal.file.bytes': long({
    default: 64 * MIB,
    min: 1 * MIB,
    max: 1024 * MIB,
    doc: 'A local write-ahead file is sealed at this size.',
  }),
  'log.wal.file.commits': int({
    default: 32_768,
    min: 2,
    doc: 'It is sealed at so many commits too: ends of transactions take no bytes of it, but rows and memory until then.',
  }),
  'log.wal.extend.bytes': long({
    default: 1 * MIB,
    min: 4096,
    doc: 'Small flushes find the file extended this far ahead, so that their sync changes no file size.',
  }),
  'log.direct.io': bool({
    default: true,
    doc: 'Write-ahead files are written and read past the page cache where the file system can: a tenth of the processor time for fresh files. Off: records read soon after they were written come from memory.',
  }),
  'log.wal.recycle.files': int({
    default: 4,
    min: 0,
    max: 64,
    doc: 'Deleted write-ahead files kept for new use: overwriting is cheaper than allocating.',
  }),
  'log.disk.reserve.bytes': long({
    default: 256 * MIB,
    min: 0,
    doc: 'Below this much free disk Produce is refused, so that reads, deletes and retention go on. Somewhat above it compaction waits already, and tables no longer hold retention back.',
  }),
  'log.disk.ballast.bytes': long({
    default: 16 * MIB,
    min: 0,
    doc: 'A file of this size is held and released when the disk is full, so that deletions can be recorded.',
  }),
  'log.flush.bytes': long({
    default: 8 * MIB,
    min: 64 * 1024,
    doc: 'S3: a flush of this size goes out at once.',
  }),
  'log.flush.age.ms': int({
    default: 250,
    min: 1,
    max: 60_000,
    doc: 'S3: no batch waits longer than this for its flush to start.',
  }),
  'log.flush.idle.ms': int({
    default: 20,
    min: 0,
    max: 60_000,
    doc: 'S3: a flush starts when nothing was appended for this long, if the rate at rest allows.',
  }),
  'log.flush.rate': int({
    default: 4,
    min: 1,
    max: 1_000,
    doc: 'S3: flushes a second that idle gaps may start; each is a PUT that costs money.',
  }),
  'log.flush.parallel': int({
    default: 4,
    min: 1,
    max: 64,
    doc: 'S3: PUTs in flight at once. Commits follow the order of admission whatever order they finish in.',
  }),
  'log.put.hedge.ms': int({
    default: 1_500,
    min: 10,
    doc: 'S3: a PUT that takes this long, and three times longer than usual, is tried a second time under another key of the same flush; sooner when nearly all PUTs lately took less (log.put.hedge.share).',
  }),
  'log.put.hedge.share': double({
    default: 0.05,
    min: 0,
    max: 1,
    doc: 'S3: second PUTs per PUT at most of those that are merely slower than 97 of 100 lately. 0: none is tried a second time.',
  }),
  'log.put.give.up.ms': int({
    default: 30_000,
    min: 1_000,
    doc: 'S3: after this long a flush fails its requests with a retriable error and is never committed later.',
  }),
  'log.follow.poll.ms': int({
    default: 100,
    min: 1,
    max: 60_000,
    doc: 'Several brokers: while readers wait, one asks the metadata store this often for what others have committed. Hints of other brokers come before that.',
  }),
  'log.follow.idle.ms': int({
    default: 1_000,
    min: 1,
    max: 60_000,
    doc: 'Several brokers: the same while nobody waits.',
  }),
  'log.follow.horizon.ms': long({
    default: 3_600_000,
    min: 60_000,
    doc: 'Several brokers: how long commits are kept for followers. A broker that was paused or cut off for longer starts again.',
  }),
  'log.follow.objects.ms': int({
    default: 3_000,
    min: 10,
    max: 20_000,
    doc: 'Several brokers: how often one asks which objects others have sealed or compacted. Half a minute without an answer, and reads of committed records that need it are refused until there is one.',
  }),
  'log.follow.starts.ms': int({
    default: 2_000,
    min: 10,
    max: 60_000,
    doc: 'Several brokers: at most this often log starts and sizes are read anew that retention, DeleteRecords or compaction elsewhere changed; at once for what must not be stale, as ListOffsets, and when another broker tells of DeleteRecords.',
  }),
  'log.follow.rows.lifetime.ms': int({
    default: 20_000,
    min: 100,
    doc: 'Several brokers: how long a broker believes where records of an object lie. Far below log.delete.grace.ms, which keeps replaced objects for those who still do.',
  }),
  'producer.id.expiration.ms': long({
    default: 86_400_000,
    min: 1_000,
    doc: 'Sequences of a producer that was idle for this long are forgotten, as in Kafka.',
  }),
} as const;

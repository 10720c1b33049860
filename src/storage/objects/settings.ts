// Settings of the object stores. Credentials left empty come from the AWS SDK's own chain (environment,
// shared files, instance roles).
import { bool, double, int, long, text } from '../../base/settings.ts';

export const objectSettings = {
  's3.endpoint': text({
    default: '',
    doc: 'URL of an S3-compatible store, e.g. http://127.0.0.1:9000. Empty: AWS itself, in `s3.region`.',
    pattern: /^$|^https?:\/\/[^/\s]+\/?$/,
    wanted: 'an http or https URL without a path, or empty',
  }),
  's3.region': text({
    default: '',
    doc: 'Region of the bucket. Empty: AWS_REGION or the shared configuration, and us-east-1 if `s3.endpoint` is set.',
  }),
  's3.path.style': bool({
    default: true,
    doc: 'Address buckets as endpoint/bucket/key. Most S3-compatible stores need it; without `s3.endpoint` it is off.',
  }),
  's3.access.key.id': text({
    default: '',
    doc: 'Access key. Empty: the AWS SDK looks for credentials.',
  }),
  's3.secret.access.key': {
    ...text({ default: '', doc: 'Secret that belongs to `s3.access.key.id`.' }),
    type: 'password' as const,
  },
  's3.session.token': {
    ...text({ default: '', doc: 'Session token of temporary credentials.' }),
    type: 'password' as const,
  },
  's3.sign.payload': bool({
    default: false,
    doc: 'Sign a SHA-256 of every body. TLS protects bodies on their way, and a CRC32 that the store checks finds damage; without TLS in a network that others write to, turn it on: it costs a quarter of the processor time of a flush.',
  }),
  's3.request.timeout.ms': long({
    default: 20_000,
    min: 100,
    max: 600_000,
    doc: 'Limit of one request. A put that takes longer counts as unknown. 8 MiB at 1 MiB/s must fit.',
  }),
  's3.connect.timeout.ms': long({
    default: 3_000,
    min: 10,
    max: 600_000,
    doc: 'Limit for reaching the endpoint.',
  }),
  's3.max.connections': int({
    default: 64,
    min: 1,
    max: 4_096,
    doc: 'Sockets kept to the endpoint; more requests wait. Some tens saturate an instance’s network.',
  }),
  's3.part.bytes': long({
    default: 8 * 1024 * 1024,
    min: 5 * 1024 * 1024,
    max: 1024 * 1024 * 1024,
    doc: 'Part size of multipart uploads, used for bodies above 16 MiB. S3 takes no part below 5 MiB.',
  }),
  'objects.retry.attempts': int({
    default: 6,
    min: 1,
    max: 100,
    doc: 'Attempts of one operation on the store, the first included, before its error reaches the caller: catalogs and whatever else isn’t the log.',
  }),
  'objects.retry.give.up.ms': long({
    default: 30_000,
    min: 100,
    max: 3_600_000,
    doc: 'S3: requests of the log and of tables are tried anew for this long, however many attempts that takes: a store that says “slow down” costs time only.',
  }),
  'objects.retry.first.delay.ms': long({
    default: 50,
    min: 0,
    max: 60_000,
    doc: 'Pause before the second attempt; it doubles each time.',
  }),
  'objects.retry.max.delay.ms': long({
    default: 3_000,
    min: 0,
    max: 600_000,
    doc: 'Longest pause between attempts.',
  }),
  'objects.hedge.quantile': double({
    default: 0.97,
    min: 0.5,
    max: 1,
    doc: 'S3: a read that takes longer than this share of recent reads of its size is asked a second time. 1: longer than all of them.',
  }),
  'objects.hedge.share': double({
    default: 0.05,
    min: 0,
    max: 1,
    doc: 'S3: second requests per request at most, for reads and for flushes. 0: never.',
  }),
  'objects.hedge.min.ms': int({
    default: 20,
    min: 1,
    max: 60_000,
    doc: 'S3: no read is asked a second time sooner than this, however fast the store is.',
  }),
  'objects.hedge.late.ms': int({
    default: 2_000,
    min: 1,
    max: 600_000,
    doc: 'S3: a read without an answer for this long, and three times longer than usual, is asked a second time whatever the share.',
  }),
  'objects.share.catch.up': double({
    default: 0.5,
    min: 0.01,
    max: 1,
    doc: 'Share of s3.max.connections for consumers that read from far behind. Background purposes together leave a quarter free for flushes and reads at the tail.',
  }),
  'objects.share.tables': double({
    default: 0.4,
    min: 0.01,
    max: 1,
    doc: 'Share of s3.max.connections for table workers and their files.',
  }),
  'objects.share.compaction': double({
    default: 0.25,
    min: 0.01,
    max: 1,
    doc: 'Share of s3.max.connections for compaction of the log.',
  }),
  'objects.share.maintenance': double({
    default: 0.1,
    min: 0.01,
    max: 1,
    doc: 'Share of s3.max.connections for deletions and sweeps.',
  }),
  'objects.bytes.per.second.catch.up': long({
    default: 0,
    min: 0,
    doc: 'Bytes per second that consumers far behind may take from the store through this node. 0: as many as come.',
  }),
  'objects.bytes.per.second.tables': long({
    default: 0,
    min: 0,
    doc: 'The same for table workers.',
  }),
  'objects.bytes.per.second.compaction': long({
    default: 0,
    min: 0,
    doc: 'The same for compaction of the log, reads and writes; log.compact.rate.bytes bounds its writes already.',
  }),
  'objects.price.write': double({
    default: 0.005,
    min: 0,
    doc: 'Dollars per 1,000 writing requests (PUT, parts, listings), for the cost in the metrics. AWS S3 Standard, us-east-1.',
  }),
  'objects.price.read': double({
    default: 0.0004,
    min: 0,
    doc: 'Dollars per 1,000 reading requests (GET, HEAD). Deletions cost nothing.',
  }),
};

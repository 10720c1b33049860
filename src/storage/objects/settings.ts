// Settings of the object stores. Credentials left empty come from the AWS SDK's own chain (environment,
// shared files, instance roles).
import { bool, int, long, text } from '../../base/settings.ts';

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
    doc: 'Attempts of one operation on the store, the first included, before its error reaches the caller.',
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
};

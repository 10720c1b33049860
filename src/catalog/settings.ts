// Settings of the catalog: the embedded one, and which one table topics use.
import { bool, int, long, oneOf, type Setting, text } from '../base/settings.ts';

/** A text that is never shown. */
const secret = (doc: string): Setting<string> => ({
  ...text({ default: '', doc }),
  type: 'password',
});
const url = { pattern: /^$|^https?:\/\/[^\s]+$/, wanted: 'an http or https URL, or empty' };

/** Where table topics and SQL find their tables. */
const external = {
  'catalog.type': oneOf(['embedded', 'rest', 'glue'], {
    default: 'embedded',
    doc: 'Catalog of the table topics: `embedded`, an Iceberg REST catalog at `catalog.uri`, or AWS Glue. docs/catalogs.md has a guide to each.',
  }),
  'catalog.uri': text({
    default: '',
    ...url,
    doc: 'REST: address of the catalog, without `/v1`. Glue: another endpoint than AWS’s own for the region.',
  }),
  'catalog.warehouse': text({
    default: '',
    doc: 'REST: the warehouse to ask for, by the catalog’s name for it. Glue: where new tables are put, e.g. `s3://bucket/warehouse`.',
  }),
  'catalog.storage': text({
    default: '',
    pattern: /^$|^(?:s3:\/\/[^/\s]+|file:\/\/\/[^\s]).*$/,
    wanted: 'file:///folder or s3://bucket/prefix, or empty',
    doc: 'Where the tables of a REST or Glue catalog lie: their files are read and written there, with the `s3.*` settings. Empty: `catalog.warehouse`, which is then a location.',
  }),
  'catalog.token': secret(
    'REST: a Bearer token for every request, instead of `catalog.credential`.',
  ),
  'catalog.credential': secret(
    'REST: `client-id:secret` for OAuth2 client credentials. The token is renewed before its time is up.',
  ),
  'catalog.oauth2.server.uri': text({
    default: '',
    ...url,
    doc: 'REST: token endpoint of the identity provider. Empty: the catalog’s own, `/v1/oauth/tokens`.',
  }),
  'catalog.oauth2.scope': text({
    default: 'catalog',
    doc: 'REST: scope that is asked for; Polaris wants `PRINCIPAL_ROLE:ALL`. Empty: none.',
  }),
  'catalog.oauth2.audience': text({
    default: '',
    doc: 'REST: audience that is asked for, where the identity provider wants one.',
  }),
  'catalog.oauth2.resource': text({
    default: '',
    doc: 'REST: resource that is asked for, where the identity provider wants one.',
  }),
  'catalog.sigv4.enabled': bool({
    default: false,
    doc: 'REST: sign every request as AWS does (Glue’s and S3 Tables’ Iceberg endpoints).',
  }),
  'catalog.sigv4.service': text({
    default: 'glue',
    doc: 'REST: AWS service that is signed for: `glue`, `s3tables`, `execute-api`.',
  }),
  'catalog.vended.credentials': bool({
    default: false,
    doc: 'REST: ask the catalog for keys to each table’s files and use them instead of the `s3.*` keys. They are renewed with every commit.',
  }),
  'catalog.aws.region': text({
    default: '',
    doc: 'Glue and SigV4: region. Empty: `s3.region`, then the AWS SDK’s own search.',
  }),
  'catalog.aws.access.key.id': text({
    default: '',
    doc: 'Glue and SigV4: access key. Empty: the AWS SDK looks for credentials.',
  }),
  'catalog.aws.secret.access.key': secret(
    'Glue and SigV4: the secret that belongs to `catalog.aws.access.key.id`.',
  ),
  'catalog.aws.session.token': secret('Glue and SigV4: session token of temporary credentials.'),
  'catalog.glue.id': text({
    default: '',
    doc: 'Glue: AWS account whose Data Catalog is used. Empty: the caller’s own.',
  }),
  'catalog.glue.skip.archive': bool({
    default: true,
    doc: 'Glue: keep no version of a table at each commit. Off, a commit every 10 s reaches Glue’s quota of versions in 12 days.',
  }),
  'catalog.request.timeout.ms': long({
    default: 30_000,
    min: 100,
    max: 600_000,
    doc: 'REST and Glue: limit of one request. A commit that takes longer counts as unknown.',
  }),
  'catalog.read.attempts': int({
    default: 4,
    min: 1,
    max: 100,
    doc: 'REST and Glue: attempts of a read, the first included. Changes are sent once.',
  }),
  'catalog.max.response.bytes': long({
    default: 256 * 1024 * 1024,
    min: 1024 * 1024,
    doc: 'REST: longest answer that is read. A table of 10,000 snapshots takes about 10 MiB.',
  }),
  'catalog.stale.believe.ms': long({
    default: 5 * 60_000,
    min: 0,
    doc: 'REST and Glue: an answer older than an earlier one is not believed for this long, since replicas lag; then somebody has really put older metadata in place.',
  }),
};

export const catalogSettings = {
  ...external,
  'catalog.vend.credentials': bool({
    default: false,
    doc: 'Hand the S3 keys of this process to every client that loads a table. Off: clients bring their own keys.',
  }),
  'catalog.token.lifetime.ms': long({
    default: 60 * 60 * 1000,
    min: 60_000,
    max: 7 * 24 * 60 * 60 * 1000,
    doc: 'How long a token of `POST /v1/oauth/tokens` holds. Clients ask for a new one before it ends.',
  }),
  'catalog.metadata.cache.bytes': long({
    default: 32 * 1024 * 1024,
    min: 0,
    doc: 'Metadata files kept parsed, by the length of their text. They never change, so nothing is ever stale.',
  }),
  'catalog.commit.attempts': int({
    default: 8,
    min: 1,
    max: 100,
    doc: 'Attempts of a commit whose requirements still hold but whose table moved meanwhile, before it answers 409.',
  }),
  'catalog.max.request.bytes': long({
    default: 32 * 1024 * 1024,
    min: 1024,
    doc: 'Longest request body. A schema of 10,000 columns takes about 1 MiB.',
  }),
};

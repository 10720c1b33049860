// Settings of a schema registry elsewhere: Confluent's, or anything that speaks its HTTP interface.
import { int, list, text, type Values } from '../../base/settings.ts';

export const externalRegistrySettings = {
  'schema.registry.url': list<string>({
    default: [],
    doc: 'Schema registries (http or https addresses, tried in turn) that table topics ask instead of the embedded one. Empty: the embedded one. Records are decoded by what is registered there; the embedded one goes on serving clients.',
  }),
  'schema.registry.auth': {
    ...text({
      default: '',
      doc: 'Who Floe is to that registry: user:password for HTTP Basic, bearer:TOKEN for a token. Empty: nobody.',
    }),
    type: 'password' as const,
  },
  'schema.registry.tls.ca': text({
    default: '',
    doc: 'File with the certificates (PEM) that sign the registry’s. Empty: the system’s.',
  }),
  'schema.registry.request.timeout.ms': int({
    default: 5_000,
    min: 10,
    doc: 'After so long without a whole answer a request to the registry counts as failed.',
  }),
  'schema.registry.request.attempts': int({
    default: 3,
    min: 1,
    max: 10,
    doc: 'Attempts of a request that fails for the moment, waiting in between.',
  }),
  'schema.registry.cache.size': int({
    default: 1_000,
    min: 1,
    doc: 'Schemas of that registry kept in memory. An id never changes its meaning.',
  }),
  'schema.registry.latest.ttl.ms': int({
    default: 30_000,
    min: 0,
    doc: 'How long the newest version of a subject is taken for the newest.',
  }),
} as const;

export type ExternalRegistrySettings = Values<typeof externalRegistrySettings>;

// Settings of the embedded catalog.
import { bool, int, long } from '../base/settings.ts';

export const catalogSettings = {
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

// What a request to the store is for. Requests of different purposes are counted, paced and bounded apart, so that a
// back-fill or a compaction never delays a produce or a read at the tail.
import type { ObjectStore } from './object-store.ts';

/**
 * By urgency. `produce`: flushes; `tail`: what other brokers have just written; `catch-up`: consumers behind; `tables`:
 * workers, their files, scans of queries; `compaction`; `maintenance`: collection and sweeps; `other`: everything else,
 * catalogs above all, which people wait for.
 */
export const purposes = [
  'produce',
  'tail',
  'other',
  'catch-up',
  'tables',
  'compaction',
  'maintenance',
] as const;
export type Purpose = (typeof purposes)[number];

/** Those that may wait for as long as the foreground needs. */
export const backgroundPurposes = ['catch-up', 'tables', 'compaction', 'maintenance'] as const;
export type BackgroundPurpose = (typeof backgroundPurposes)[number];

export function isBackground(purpose: Purpose): purpose is BackgroundPurpose {
  return (backgroundPurposes as readonly Purpose[]).includes(purpose);
}

/** The store as this purpose sees it; the same one where purposes aren't told apart (a local folder, memory). */
export function storeFor(store: ObjectStore, purpose: Purpose): ObjectStore {
  return store.for?.(purpose) ?? store;
}

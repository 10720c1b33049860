// What an operator sees of stores, asked now and then by whoever maintains the log: how large the metadata is, and whether
// what may be deleted is deleted. Not for: what the collector has done (its counters).
import type { Metrics } from '../../base/metrics.ts';
import type { Metadata } from '../../metadata/metadata.ts';

export interface StoreGaugesOptions {
  readonly metadata: {
    readonly cluster: Pick<Metadata['cluster'], 'bytes' | 'nowMs'>;
    readonly objects: Pick<Metadata['objects'], 'deletable'>;
  };
  readonly metrics: Pick<Metrics, 'gauge'>;
  /** `log.delete.grace.ms`. */
  readonly graceMs: number;
}

/** @throws FloeError `unavailable`, `timeout`: the metadata store could not be asked. */
export async function gaugeStores({
  metadata,
  metrics,
  graceMs,
}: StoreGaugesOptions): Promise<void> {
  metrics.gauge(
    'floe_metadata_bytes',
    'Size of the metadata store, with its indexes.',
    await metadata.cluster.bytes(),
  );
  const dueMs = (await metadata.cluster.nowMs()) - graceMs;
  const [first] = await metadata.objects.deletable(dueMs, 1);
  metrics.gauge(
    'floe_log_deletion_overdue_seconds',
    'Since when the first object that may be deleted waits for it, orphans included; 0: none does.',
    first === undefined ? 0 : (dueMs - first.changedMs) / 1_000,
  );
}

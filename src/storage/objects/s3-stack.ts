// An S3 store as the program uses it: one client, and for each purpose a view of it that counts, paces, hedges and retries.
// From the outside in: retries, hedges, pace, counting, so that every attempt is counted, and each attempt of a hedge and
// of a retry waits for its turn.
import type { Clock } from '../../base/clock.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Prng } from '../../base/prng.ts';
import { measuredStore } from './decorators/counting.ts';
import { governedStore, newRates } from './decorators/governed.ts';
import { hedgingStore } from './decorators/hedging.ts';
import { retryingStore } from './decorators/retrying.ts';
import type { ObjectStore } from './object-store.ts';
import { type Purpose, purposes } from './purposes.ts';
import { RequestSlots, type SlotLimits } from './request-slots.ts';
import type { S3Settings } from './s3-context.ts';

export interface S3StackOptions {
  readonly clock: Clock;
  readonly prng: Prng;
  readonly metrics: Metrics;
  readonly settings: S3Settings;
  /** What requests are for that come without `for`. Default: `other`. */
  readonly purpose?: Purpose;
}

/** `bare` with its views. */
export function s3Stack(bare: ObjectStore, options: S3StackOptions): ObjectStore {
  const { clock, settings } = options;
  const shared = { slots: new RequestSlots(clock, slotLimits(settings)), rates: newRates(clock) };
  const views = new Map<Purpose, ObjectStore>();
  const viewFor = (purpose: Purpose): ObjectStore => {
    let view = views.get(purpose);
    if (view === undefined) {
      view = { ...viewOf(bare, { ...options, ...shared, purpose }), for: viewFor };
      views.set(purpose, view);
    }
    return view;
  };
  observe(options.metrics, shared.slots);
  return viewFor(options.purpose ?? 'other');
}

type ViewOptions = S3StackOptions & {
  readonly purpose: Purpose;
  readonly slots: RequestSlots;
  readonly rates: ReturnType<typeof newRates>;
};

function viewOf(bare: ObjectStore, options: ViewOptions): ObjectStore {
  const { settings, purpose } = options;
  const prices = {
    write: settings['objects.price.write'],
    read: settings['objects.price.read'],
    partBytes: settings['s3.part.bytes'],
  };
  const measured = measuredStore(bare, { ...options, prices });
  const governed = governedStore(measured, options);
  const hedged = hedgingStore(governed, options);
  // Whoever calls a catalog waits for it; the log and its readers would rather wait than fail.
  const giveUpMs = settings['objects.retry.give.up.ms'];
  const patient = retryingStore(hedged, purpose === 'other' ? options : { ...options, giveUpMs });
  if (bare.abortUploads === undefined) return patient;
  return {
    ...patient,
    abortUploads: (prefix, beforeMs) => bare.abortUploads!(prefix, beforeMs),
    countUploads: (prefix, beforeMs) => bare.countUploads!(prefix, beforeMs),
  };
}

/** What each purpose may take of the connections. */
function slotLimits(settings: S3Settings): SlotLimits {
  const compaction = {
    share: settings['objects.share.compaction'],
    bytesPerSecond: settings['objects.bytes.per.second.compaction'],
  };
  return {
    slots: settings['s3.max.connections'],
    of: {
      'catch-up': {
        share: settings['objects.share.catch.up'],
        bytesPerSecond: settings['objects.bytes.per.second.catch.up'],
      },
      tables: {
        share: settings['objects.share.tables'],
        bytesPerSecond: settings['objects.bytes.per.second.tables'],
      },
      compaction,
      maintenance: { share: settings['objects.share.maintenance'], bytesPerSecond: 0 },
    },
  };
}

function observe(metrics: Metrics, slots: RequestSlots): void {
  const sum = (of: (purpose: Purpose) => number) =>
    purposes.reduce((total, purpose) => total + of(purpose), 0);
  metrics.observeGauge('floe_objects_requests_running', 'Requests to S3 under way.', () =>
    sum((purpose) => slots.used(purpose)),
  );
  metrics.observeGauge(
    'floe_objects_requests_waiting',
    'Requests to S3 that wait for a slot.',
    () => sum((purpose) => slots.waiting(purpose)),
  );
}

// What readers at the tail ask of the bucket: each zone's brokers read the flushes of the others through the product's zone
// source and chunk cache, an owner by rendezvous for each flush. A zone's own flushes are in its writers' memory: whoever
// is a partition's leader in a zone has written what the zone's producers sent it.
import type { Clock } from '../../src/base/clock.ts';
import { noMetrics } from '../../src/base/metrics.ts';
import { seededPrng } from '../../src/base/prng.ts';
import { chooseNode } from '../../src/cluster/rendezvous.ts';
import { BLOCK_HEADER_BYTES } from '../../src/storage/log/wal-format.ts';
import { type ZoneSource, zoneSource } from '../../src/storage/log/zone-source.ts';
import { walKey } from '../../src/storage/paths.ts';
import { type Flush, objectSizes } from './flushes.ts';
import { CLUSTER_ID, type MonthSettings, START_MS } from './log-world.ts';
import { SimulatedStore } from './store.ts';
import { brokersOf, leaderOf, MIB, type SimulatedBroker, type Workload } from './workload.ts';

/** A flush and who wrote it. */
export interface WrittenFlush {
  readonly flush: Flush;
  readonly broker: SimulatedBroker;
}

export interface TailCost {
  /** GETs a flush, by all zones together. */
  readonly getsPerFlush: number;
  /** Bytes from the bucket per byte written. */
  readonly bytesPerByte: number;
  /** Bytes between brokers of one zone per byte written. */
  readonly peerBytesPerByte: number;
}

/** Time stands still: what is counted doesn't depend on it. */
const instantClock: Clock = {
  now: () => START_MS,
  monotonic: () => 0,
  setTimer: () => ({ cancel() {} }),
  sleep: async () => {},
};

export async function measureTail(
  flushes: readonly WrittenFlush[],
  workload: Workload,
  settings: MonthSettings,
): Promise<TailCost> {
  const store = new SimulatedStore({
    clock: instantClock,
    prng: seededPrng(1),
    partBytes: settings['s3.part.bytes'],
  });
  const zones = new Zones(brokersOf(workload), store, settings);
  let written = 0;
  for (const [n, { flush, broker }] of flushes.entries()) {
    const key = walKey(CLUSTER_ID, { timeMs: START_MS + n, id: `f${n}` });
    const index = flush.partitionIds.length * INDEX_ENTRY_BYTES;
    store.place(key, objectSizes(flush, index).bytes);
    written += flush.bytes;
    for (const rack of workload.zones) if (rack !== broker.rack) await zones.read(rack, key, flush);
  }
  const { requests, bytes } = store.tallies.get('tail get')!;
  return {
    getsPerFlush: requests / flushes.length,
    bytesPerByte: bytes / written,
    peerBytesPerByte: zones.peerBytes / written,
  };
}

/** Of the packed index of a flush. */
export const INDEX_ENTRY_BYTES = 45;
/** Where reads put their bytes; nobody looks at them. */
const SCRATCH = new Uint8Array(8 * MIB);

class Zones {
  peerBytes = 0;
  readonly #brokers: readonly SimulatedBroker[];
  readonly #sources = new Map<number, ZoneSource>();

  constructor(brokers: readonly SimulatedBroker[], store: SimulatedStore, settings: MonthSettings) {
    this.#brokers = brokers;
    for (const broker of brokers) {
      const source = zoneSource({ store, clock: instantClock, metrics: noMetrics, settings });
      source.setOwners((key) => {
        const owner = chooseNode(`zone/${key}`, brokers, broker.rack)!;
        if (owner === broker) return undefined;
        return {
          read: async (asked, range) => {
            this.peerBytes += range.length;
            return this.#sources.get(owner.nodeId)!.serve(asked, range);
          },
        };
      });
      this.#sources.set(broker.nodeId, source);
    }
  }

  /** Every partition's leader in the zone reads its block. */
  async read(rack: string, key: string, { partitionIds, lengths }: Flush): Promise<void> {
    const object = { objectId: 0, key, generation: 0 };
    let position = 0;
    for (const [n, partitionId] of partitionIds.entries()) {
      const length = BLOCK_HEADER_BYTES + lengths[n]!;
      const leader = leaderOf(partitionId, this.#brokers, rack);
      const into = SCRATCH.subarray(0, length);
      const source = this.#sources.get(leader.nodeId)!;
      await source.read(object, [{ position, into }], { purpose: 'consumer' });
      position += length;
    }
  }
}

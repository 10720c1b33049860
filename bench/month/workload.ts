// Who writes what in the simulated month: brokers over zones, topics of three sizes, and which broker of each zone stands
// for which partition (by the product's own rendezvous hashing). Plain data and pure functions.
// Not for: prices (prices.ts), when bytes become objects (flushes.ts).
import { type Candidate, chooseNode } from '../../src/cluster/rendezvous.ts';

export const MIB = 1024 * 1024;
export const GIB = 1024 * MIB;
export const DAY_MS = 24 * 60 * 60 * 1_000;

/** Topics of one kind; together they carry `share` of all bytes, evenly. */
export interface TopicKind {
  readonly name: string;
  readonly topics: number;
  readonly partitions: number;
  readonly share: number;
}

export interface Workload {
  /** Of the whole cluster. */
  readonly bytesPerSecond: number;
  readonly zones: readonly string[];
  readonly brokersPerZone: number;
  readonly kinds: readonly TopicKind[];
  /** A producer sends a batch of each of its partitions this often (`linger.ms` with enough to send). */
  readonly lingerMs: number;
  readonly recordBytes: number;
  readonly retentionMs: number;
  /** Readers of everything at the tail; each is spread over the zones and reads in its own. */
  readonly tailReaders: number;
  /** Share of all bytes that is read again a day later, from storage. */
  readonly rereadShare: number;
}

/**
 * 1 GiB/s in, 3 × out, 24 brokers in 3 zones, 284 partitions (rivals' runs have 256 and 288): few large topics carry
 * most of it, as they do everywhere.
 * Three days are kept, which is what AutoMQ's published bill pays for.
 */
export const MONTH: Workload = {
  bytesPerSecond: GIB,
  zones: ['a', 'b', 'c'],
  brokersPerZone: 8,
  kinds: [
    { name: 'large', topics: 4, partitions: 32, share: 0.75 },
    { name: 'medium', topics: 12, partitions: 8, share: 0.2 },
    { name: 'small', topics: 10, partitions: 6, share: 0.05 },
  ],
  lingerMs: 100,
  recordBytes: 1_024,
  retentionMs: 3 * DAY_MS,
  tailReaders: 2.9,
  rereadShare: 0.1,
};

export interface Partition {
  readonly partitionId: number;
  readonly bytesPerSecond: number;
}

/** All partitions with what they take; ids count from 1, a topic's follow one another. */
export function partitionsOf({ kinds, bytesPerSecond }: Workload): Partition[] {
  let partitionId = 0;
  return kinds.flatMap(({ topics, partitions, share }) =>
    Array.from({ length: topics * partitions }, () => {
      partitionId += 1;
      return { partitionId, bytesPerSecond: (bytesPerSecond * share) / (topics * partitions) };
    }),
  );
}

export interface SimulatedBroker extends Candidate {
  readonly rack: string;
}

export function brokersOf({ zones, brokersPerZone }: Workload): SimulatedBroker[] {
  return zones.flatMap((rack, zone) =>
    Array.from({ length: brokersPerZone }, (_, n) => {
      return { nodeId: zone * brokersPerZone + n + 1, rack, draining: false };
    }),
  );
}

/** The broker that clients of a zone are told to be a partition's leader. */
export function leaderOf(
  partitionId: number,
  brokers: readonly SimulatedBroker[],
  rack: string,
): SimulatedBroker {
  return chooseNode(`p/${partitionId}`, brokers, rack)!;
}

/** What each broker is sent: producers are spread over the zones evenly and write within theirs. */
export function assignments(workload: Workload): Map<SimulatedBroker, Partition[]> {
  const brokers = brokersOf(workload);
  const assigned = new Map<SimulatedBroker, Partition[]>(brokers.map((broker) => [broker, []]));
  for (const { partitionId, bytesPerSecond } of partitionsOf(workload))
    for (const rack of workload.zones) {
      const part = { partitionId, bytesPerSecond: bytesPerSecond / workload.zones.length };
      assigned.get(leaderOf(partitionId, brokers, rack))!.push(part);
    }
  return assigned;
}

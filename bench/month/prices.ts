// What the month costs: prices as AWS lists them for us-east-1, on demand, and the two figures that rivals publish.
// Pure. Every number says where it is from; those that are assumptions say so. Not for: how much is used (month.ts).
import { GIB, MIB } from './workload.ts';

/** What a month of 30 days takes, scaled from the days that were steady. */
export interface MonthUsage {
  readonly writeRequests: number;
  readonly readRequests: number;
  readonly storedBytes: number;
  readonly crossZoneBytes: number;
  readonly machines: number;
  /** Bytes that compaction writes per byte produced. */
  readonly rewrites: number;
  /** Maintainers that are at work at any time. */
  readonly busyMaintainers: number;
  readonly networkBytesPerSecond: number;
  readonly commitsPerSecond: number;
  readonly rowsPerSecond: number;
  /** Requests a second, by `<purpose> <operation>`. */
  readonly perSecond: Readonly<Record<string, number>>;
  /** Largest difference of a steady day's requests from their mean. */
  readonly unsteadiness: number;
}

/** Amazon S3 Standard, aws.amazon.com/s3/pricing, as of 2026; gigabytes are 2^30 bytes there. Deletions are free. */
export const S3 = {
  dollarsPerWrite: 0.005 / 1_000,
  dollarsPerRead: 0.0004 / 1_000,
  /** The first 50 TB, the next 450 TB, all beyond, per GB and month. */
  storage: [
    { upToGb: 51_200, dollars: 0.023 },
    { upToGb: 512_000, dollars: 0.022 },
    { upToGb: Infinity, dollars: 0.021 },
  ],
} as const;

/**
 * m7g.4xlarge, 16 processors and 64 GiB: 476.544 dollars a month and 960 MiB/s of network that last, as AutoMQ's published
 * comparison states them (automq.com/docs, "AutoMQ vs. Apache Kafka Benchmarks and Cost").
 */
export const MACHINE = { dollarsPerMonth: 476.544, networkBytesPerSecond: 960 * MIB } as const;
/** Machines are filled up to this share of their network: room for a zone's brokers that are gone, and for bursts. */
export const NETWORK_SHARE = 0.7;

/**
 * RDS for PostgreSQL, db.m7g.4xlarge, Multi-AZ, 400 GB of gp3: list prices of aws.amazon.com/rds/postgresql/pricing as known
 * in 2026 ($0.168 an hour for the smallest of the family, doubled with each size, twice that for Multi-AZ). That this size
 * carries the load is an assumption; nothing here measures it.
 */
export const DATABASE = {
  dollarsPerHour: 0.168 * 8 * 2,
  storageGb: 400,
  dollarsPerGb: 0.23,
} as const;

/** Traffic between zones, per GB and direction (aws.amazon.com/ec2/pricing/on-demand, "Data Transfer"). */
export const CROSS_ZONE_DOLLARS_PER_GB = 0.01 * 2;

export const HOURS_PER_MONTH = 730;

export interface Bill {
  readonly machines: number;
  readonly database: number;
  readonly stored: number;
  readonly writes: number;
  readonly reads: number;
  readonly crossZone: number;
  readonly total: number;
}

/** Dollars of storing so many GB for a month. */
export const storageDollars = (gb: number): number => stepped(gb, S3.storage);

/** How many machines the traffic takes, a whole number per zone. */
export function machinesFor(bytesPerSecond: number, zones: number): number {
  const each = MACHINE.networkBytesPerSecond * NETWORK_SHARE;
  return Math.ceil(bytesPerSecond / each / zones) * zones;
}

export function billOf(usage: MonthUsage): Bill {
  const { machines, storedBytes, writeRequests, readRequests, crossZoneBytes } = usage;
  const items = {
    machines: machines * MACHINE.dollarsPerMonth,
    database:
      DATABASE.dollarsPerHour * HOURS_PER_MONTH + DATABASE.storageGb * DATABASE.dollarsPerGb,
    stored: storageDollars(storedBytes / GIB),
    writes: writeRequests * S3.dollarsPerWrite,
    reads: readRequests * S3.dollarsPerRead,
    crossZone: (crossZoneBytes / GIB) * CROSS_ZONE_DOLLARS_PER_GB,
  };
  return { ...items, total: Object.values(items).reduce((sum, dollars) => sum + dollars, 0) };
}

/**
 * AutoMQ's published bill: 1 GiB/s in, 1 × out, a topic of 256 partitions, batches of up to 1 MiB, 6 × m7g.4xlarge in three
 * zones; the storage line is three days at 0.023 flat (automq.com/docs, "AutoMQ vs. Apache Kafka Benchmarks and Cost").
 */
export const AUTOMQ = {
  machines: 2_859,
  stored: 5_961,
  requests: 3_952,
  crossZone: 128,
  total: 12_899,
  /** Its figures for Apache Kafka with three replicas, no tiered storage, no fetching from followers. */
  kafkaTotal: 226_671,
} as const;

/**
 * WarpStream's list price for its software, per GiB written and stored (uncompressed) and per 15 minutes of a cluster:
 * warpstream.com/pricing as transcribed by a third party (github.com/api-evangelist/warpstream, 2026, unverified).
 * What its agents, bucket and requests cost comes on top, in the customer's account.
 */
export const WARPSTREAM = {
  written: [
    { upToGb: 51_200, dollars: 0.01 },
    { upToGb: 307_200, dollars: 0.0075 },
    { upToGb: 1_587_200, dollars: 0.0055 },
    { upToGb: 7_987_200, dollars: 0.004 },
    { upToGb: Infinity, dollars: 0.003 },
  ],
  stored: [
    { upToGb: 51_200, dollars: 0.01 },
    { upToGb: 307_200, dollars: 0.0085 },
    { upToGb: Infinity, dollars: 0.0075 },
  ],
  dollarsPerQuarterHour: 0.52083,
  /** Six m6in.4xlarge at 1.11384 dollars an hour: the machines of its published benchmark, at AWS's list price. */
  machines: 6 * 1.11384 * HOURS_PER_MONTH,
} as const;

/** A price up to an amount. */
interface Step {
  readonly upToGb: number;
  readonly dollars: number;
}

function stepped(gb: number, steps: readonly Step[]): number {
  let [dollars, from] = [0, 0];
  for (const { upToGb, dollars: price } of steps) {
    if (gb <= from) break;
    dollars += (Math.min(gb, upToGb) - from) * price;
    from = upToGb;
  }
  return dollars;
}

/** WarpStream's fee for a month at list price. */
export function warpstreamFee(writtenGb: number, storedGb: number): number {
  const quarters = 30 * 24 * 4;
  return (
    stepped(writtenGb, WARPSTREAM.written) +
    stepped(storedGb, WARPSTREAM.stored) +
    quarters * WARPSTREAM.dollarsPerQuarterHour
  );
}

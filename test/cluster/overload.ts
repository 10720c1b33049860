// Overload, with figures: a broker over PostgreSQL and an S3 double, at a load that it carries easily, meets one kind of
// overload after another. What must hold: nothing is refused, no acknowledged record is lost or there twice, memory stays
// below a figure, whoever asks for little is let in at once whatever others have queued, and once it is over rate and latency
// are what they were, by themselves, within a time. docs/object-storage.md says it to operators.
//   npm run overload [-- --seconds 10] [--only slow,bucket] [--set NAME=VALUE]
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { kafkaClient } from '../../src/cli/kafka-client.ts';
import { megabytes, quantile } from '../measured.ts';
import { latencyOf } from '../s3/double-process.ts';
import { Checks } from './checks.ts';
import { type Member, TestCluster } from './cluster.ts';
import { follow, hardlyRead, Ledger, produce } from './load.ts';

const { values: args } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    only: { type: 'string', default: '' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
const LASTS_MS = Number(args.seconds) * 1_000;
const MIB = 2 ** 20;

/** What a PUT takes, and a GET; the same while the bucket crawls; what each piece to the database takes while that does. */
const USUAL = { putMs: 300, getMs: 30 };
const CRAWL = { putMs: 3_000, getMs: 1_000, databaseMs: 250 };
/** A broker at its defaults, whatever clients and stores do. */
const MEMORY_MIB = 1_024;
/** `log.in.flight.bytes`. */
const IN_FLIGHT_MIB = 24;
/** From a request's arrival until it is admitted, for a client that asks for little. */
const DOOR_MS = 250;
/** From the end of an overload, its last request answered, until all is as before. */
const RECOVERY_MS = 30_000;
/** Over which a rate is taken, and a latency. */
const [WINDOW_MS, WINDOW_ACKS] = [4_000, 24];
const WARMING_UP_MS = 4_000;

/** Clients without a name are told apart by their addresses. */
const [STEADY, SMALL, FLOOD] = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];
const STEADY_BYTES = 500_000;
/** Just below `max.message.bytes`. */
const FLOOD_BYTES = 1_000_000;

const checks = new Checks({ failuresOnly: true });
const { check } = checks;

// ------------------------------------------------------------------ what is seen

const HEAD = ['', 'small p50', '    p99', 'acks', 'at the door', 'steady MiB/s', 'flood MiB/s'];
HEAD.push('RSS MiB', 'as before after');

function line(cells: readonly string[]): void {
  const padded = cells.map((cell, n) =>
    n === 0 ? cell.padEnd(22) : cell.padStart(HEAD[n]!.length),
  );
  process.stdout.write(`${padded.join('  ').trimEnd()}\n`);
}
const ms = (value: number) => `${value.toFixed(0)} ms`;

/** What a broker did since it was last asked to begin. */
class Seen {
  readonly #pid: number;
  readonly #logFile: string;
  readonly #sampling: NodeJS.Timeout;
  #sinceMs = 0;
  #logged = 0;
  #rss = 0;
  /** Milliseconds of the small client's acks, times of the steady ones'. */
  small: number[] = [];
  steady: number[] = [];
  flooded = 0;

  constructor({ node }: Member, logFile: string) {
    this.#pid = node.pid;
    this.#logFile = logFile;
    this.#sampling = setInterval(() => {
      this.#rss = Math.max(this.#rss, megabytes(this.#pid, 'VmRSS'));
    }, 200);
  }

  end(): void {
    clearInterval(this.#sampling);
  }

  begin(): void {
    this.#sinceMs = performance.now();
    this.#logged = this.#log().length;
    this.#rss = 0;
    this.small = [];
    this.steady = [];
    this.flooded = 0;
  }

  /** MiB/s of the steady producers over the last moments. */
  get rate(): number {
    const now = performance.now();
    const fromMs = Math.max(this.#sinceMs, now - WINDOW_MS);
    const acks = this.steady.filter((atMs) => atMs > fromMs).length;
    return mibs(acks * STEADY_BYTES, now - fromMs);
  }

  /** Median of the small client's last acks. */
  get smallMs(): number {
    return quantile(this.small.slice(-WINDOW_ACKS), 0.5);
  }

  figures() {
    const tookMs = performance.now() - this.#sinceMs;
    return {
      p50: quantile(this.small, 0.5),
      p99: quantile(this.small, 0.99),
      acks: this.small.length,
      doorMs: Math.max(0, ...this.#doorMs()),
      rate: mibs(this.steady.length * STEADY_BYTES, tookMs),
      flood: mibs(this.flooded, tookMs),
      rss: this.#rss,
    };
  }

  #log(): string {
    return readFileSync(this.#logFile, 'utf8');
  }

  /** From the log of slow requests: how long those of the small client waited before they were admitted. */
  #doorMs(): number[] {
    const lines = this.#log()
      .slice(this.#logged)
      .split('\n')
      .filter((text) => text.includes('"slow request"'));
    return lines
      .map((text) => JSON.parse(text) as { readonly client: string; readonly queueMs: number })
      .filter(({ client }) => client === 'small')
      .map(({ queueMs }) => queueMs);
  }
}

type Figures = ReturnType<Seen['figures']>;

const mibs = (bytes: number, tookMs: number) => bytes / MIB / (tookMs / 1_000);

function report(name: string, found: Figures, after = ''): void {
  const { p50, p99, acks, doorMs, rate, flood, rss } = found;
  const sizes = [rate.toFixed(1), flood.toFixed(1), String(rss), after];
  line([name, ms(p50), ms(p99), String(acks), ms(doorMs), ...sizes]);
}

// ------------------------------------------------------------------ overloads

interface Overload {
  readonly name: string;
  /** What a PUT takes meanwhile. */
  readonly putMs: number;
  /** Returns how to end it. */
  begin(): Promise<() => Promise<unknown>>;
}

async function play({ name, putMs, begin }: Overload, seen: Seen, before: Figures): Promise<void> {
  seen.begin();
  const end = await begin();
  await sleep(LASTS_MS);
  const during = seen.figures();
  await end();
  const endedMs = performance.now();
  seen.begin();
  const since = () => performance.now() - endedMs;
  const asBefore = () =>
    seen.small.length >= WINDOW_ACKS &&
    seen.smallMs < 1.5 * before.p50 + DOOR_MS &&
    seen.rate > 0.7 * before.rate;
  while (!asBefore() && since() < RECOVERY_MS) await sleep(50);
  const holds = asBefore();
  report(name, during, `${(since() / 1_000).toFixed(1)} s`);
  check(
    holds,
    `${name}: as before after ${RECOVERY_MS} ms: ${ms(seen.smallMs)}, ${seen.rate.toFixed(1)} MiB/s`,
  );
  // Past the door it waits for what is under way, and for its own flush.
  const { p50, doorMs, rate, flood } = during;
  const most = (1.5 * IN_FLIGHT_MIB * 1_000) / (rate + flood) + 2 * putMs;
  check(p50 < most, `${name}: the small client waits ${ms(p50)}, at most ${ms(most)}`);
  check(doorMs < DOOR_MS, `${name}: the small client is let in at once, not after ${ms(doorMs)}`);
}

// ------------------------------------------------------------------ the whole

const folder = mkdtempSync(join(tmpdir(), 'floe-overload-'));
const settings = ['request.slow.ms=100', ...args.set].flatMap((setting) => ['--set', setting]);
const cluster = await TestCluster.start({ folder, brokers: 1, ...USUAL, arguments: settings });
const [produced, read] = [new AbortController(), new AbortController()];
try {
  const [member] = cluster.members as [Member];
  const { port } = member;
  const ledgers = ['steady', 'small', 'flood', 'hot'].map((topic) => new Ledger(topic));
  const [steady, small, flood, hot] = ledgers as [Ledger, Ledger, Ledger, Ledger];
  const admin = kafkaClient(member.kafka).admin();
  await admin.connect();
  await admin.createTopics({ topics: ledgers.map(({ topic }) => ({ topic, numPartitions: 1 })) });
  await admin.disconnect();

  const seen = new Seen(member, join(folder, 'broker-1.log'));
  const fails = (caught: unknown) => check(false, `a client ended: ${caught}`);
  const common = { port, onRefused: (code: number) => check(false, `refused: ${code}`) };
  const clients = [
    ...times(4, () => {
      const onAck = () => seen.steady.push(performance.now());
      const load = { from: STEADY, ledger: steady, bytes: STEADY_BYTES, underWay: 1, onAck };
      return produce({ ...common, ...load }, produced.signal).catch(fails);
    }),
    ...times(8, () => {
      const onAck = (tookMs: number) => seen.small.push(tookMs);
      const load = { from: SMALL, ledger: small, bytes: 100, underWay: 1, pauseMs: 50, onAck };
      return produce({ ...common, ...load }, produced.signal).catch(fails);
    }),
  ];
  const readers = ledgers.map((ledger) =>
    follow({ port, from: STEADY }, ledger, read.signal).catch(fails),
  );

  const floods = async (
    from: string,
    ledger: Ledger,
    shape: { readonly connections: number; readonly underWay: number },
  ) => {
    const stop = new AbortController();
    const onAck = () => {
      seen.flooded += FLOOD_BYTES;
    };
    const load = { from, ledger, bytes: FLOOD_BYTES, underWay: shape.underWay, onAck };
    const all = times(shape.connections, () =>
      produce({ ...common, ...load }, stop.signal).catch(fails),
    );
    return () => {
      stop.abort();
      return Promise.all(all);
    };
  };
  /** A store is slow, and somebody floods as well. */
  const crawls = async (trouble: () => unknown, well: () => unknown) => {
    const end = await floods(FLOOD, flood, { connections: 6, underWay: 10 });
    await trouble();
    return async () => {
      await well();
      await end();
    };
  };
  const latency = ({ putMs, getMs }: typeof USUAL) =>
    cluster.s3.setLatency(latencyOf(putMs, getMs));
  const { putMs } = USUAL;
  const overloads: readonly Overload[] = [
    {
      name: 'slow consumers',
      putMs,
      async begin() {
        const ends = await Promise.all(
          times(60, (n) => hardlyRead({ port, from: FLOOD }, 'steady', n % 2 === 0)),
        );
        return async () => {
          for (const end of ends) end();
        };
      },
    },
    {
      name: 'a hot partition',
      putMs,
      begin: () => floods(FLOOD, hot, { connections: 300, underWay: 1 }),
    },
    {
      name: 'one connection floods',
      putMs,
      begin: () => floods(SMALL, flood, { connections: 1, underWay: 100 }),
    },
    {
      name: 'the bucket crawls',
      putMs: CRAWL.putMs,
      begin: () =>
        crawls(
          () => latency(CRAWL),
          () => latency(USUAL),
        ),
    },
    {
      name: 'the database crawls',
      putMs,
      begin: () =>
        crawls(
          () => {
            member.postgres.trouble = { toServerMs: CRAWL.databaseMs };
          },
          () => {
            member.postgres.trouble = {};
          },
        ),
    },
  ];
  line(HEAD);
  await sleep(WARMING_UP_MS);
  seen.begin();
  await sleep(LASTS_MS);
  const before = seen.figures();
  report('before', before);
  const asked = args.only.split(',');
  for (const overload of overloads)
    if (asked.some((part) => overload.name.includes(part))) await play(overload, seen, before);

  produced.abort();
  await Promise.all(clients);
  const missing = () => ledgers.flatMap((ledger) => ledger.missing());
  for (
    const endMs = performance.now() + RECOVERY_MS;
    missing().length > 0 && performance.now() < endMs;
  )
    await sleep(100);
  read.abort();
  await Promise.all(readers);
  seen.end();
  const faults = [...ledgers.flatMap((ledger) => ledger.faults), ...missing()];
  for (const fault of faults.slice(0, 10)) check(false, fault);
  const acked = ledgers.reduce((sum, ledger) => sum + ledger.acked, 0);
  const most = megabytes(member.node.pid, 'VmHWM');
  process.stdout.write(`${acked} records acknowledged and read, each once; ${most} MiB at most\n`);
  check(most < MEMORY_MIB, `memory stays below ${MEMORY_MIB} MiB: ${most}`);
  for (const ended of member.ends) check(false, ended);
} finally {
  produced.abort();
  read.abort();
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
checks.end();

function times<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

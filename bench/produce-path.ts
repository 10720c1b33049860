// In-process benchmark of the write path: append → ack, every ack synced (fdatasync) and committed (SQLite FULL).
// No sockets and no protocol: what is measured is front (slab copy, outcomes) + sequencer (layout, pwritev, sync,
// commit). Prints MB/s and MB per CPU second of the whole process, the table that docs quote.
// Run: node bench/produce-path.ts [seconds]
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import { silentLogger } from '../src/base/log.ts';
import { noMetrics } from '../src/base/metrics.ts';
import { systemIds, systemPrng } from '../src/base/prng.ts';
import { resolveSettings } from '../src/base/settings.ts';
import type { AppendItem } from '../src/storage/log/log.ts';
import { type OpenedLog, openLog } from '../src/storage/log/open-log.ts';
import { readSettings } from '../src/storage/log/read-settings.ts';
import { logSettings } from '../src/storage/log/settings.ts';
import { testItem } from '../src/storage/log/test-items.ts';
import { LocalObjectStore } from '../src/storage/objects/local.ts';

interface Scenario {
  readonly name: string;
  readonly partitions: number;
  readonly recordBytes: number;
  readonly recordsPerBatch: number;
  /** Produce requests that wait for their ack at once; each has one batch for each of `spread` partitions. */
  readonly inFlight: number;
  readonly spread: number;
}

const SCENARIOS: readonly Scenario[] = [
  {
    name: '1 KiB × 16 partitions',
    partitions: 16,
    recordBytes: 1024,
    recordsPerBatch: 16,
    inFlight: 20,
    spread: 8,
  },
  {
    name: '100 B × 16 partitions',
    partitions: 16,
    recordBytes: 100,
    recordsPerBatch: 160,
    inFlight: 20,
    spread: 8,
  },
  {
    name: '1 KiB × 1,000 partitions',
    partitions: 1000,
    recordBytes: 1024,
    recordsPerBatch: 4,
    inFlight: 20,
    spread: 50,
  },
  {
    name: '100 B, one record a batch',
    partitions: 16,
    recordBytes: 100,
    recordsPerBatch: 1,
    inFlight: 50,
    spread: 8,
  },
];

async function measure(scenario: Scenario): Promise<void> {
  const directory = mkdtempSync(join(process.cwd(), '.bench-'));
  const opened = await openIn(directory);
  try {
    const topic = await opened.directory.create({
      topicId: systemIds.uuid(),
      name: 'bench',
      partitionCount: scenario.partitions,
      config: {},
      nowMs: systemClock.now(),
    });
    const producer = new Producer(opened, scenario, topic.partitions);
    await producer.run(1_000);
    const cpu = process.cpuUsage();
    const started = performance.now();
    const { bytes, acks, latencies } = await producer.run(seconds * 1_000);
    const elapsed = (performance.now() - started) / 1_000;
    const used = process.cpuUsage(cpu);
    const cpuSeconds = (used.user + used.system) / 1e6;
    latencies.sort();
    const at = (q: number) => latencies[Math.floor(latencies.length * q)]!.toFixed(1);
    console.log(
      `${scenario.name}: ${(bytes / 1e6 / elapsed).toFixed(0)} MB/s, ` +
        `${(bytes / 1e6 / cpuSeconds).toFixed(0)} MB per CPU s, ${(acks / elapsed).toFixed(0)} acks/s, ` +
        `ack p50 ${at(0.5)} p99 ${at(0.99)} ms`,
    );
  } finally {
    await opened.stop();
    rmSync(directory, { recursive: true });
  }
}

async function openIn(directory: string): Promise<OpenedLog> {
  const store = await LocalObjectStore.open(directory, { clock: systemClock, ids: systemIds });
  return openLog({
    dataDir: directory,
    store,
    settings: resolveSettings({ ...logSettings, ...readSettings }, {}),
    clock: systemClock,
    prng: systemPrng,
    ids: systemIds,
    logger: silentLogger,
    logLevel: 'silent',
    metrics: noMetrics,
  });
}

/** Idempotent, so that sequences are checked as in real life. */
class Producer {
  readonly #opened: OpenedLog;
  readonly #scenario: Scenario;
  readonly #templates: readonly AppendItem[];
  readonly #sequences: number[];
  #next = 0;

  constructor(opened: OpenedLog, scenario: Scenario, partitions: readonly number[]) {
    this.#opened = opened;
    this.#scenario = scenario;
    this.#templates = partitions.map((partitionId) =>
      testItem({
        partitionId,
        records: scenario.recordsPerBatch,
        bytes: scenario.recordsPerBatch * scenario.recordBytes,
        producerId: 1_000_000,
        sequence: 0,
        maxTimestamp: 1,
      }),
    );
    this.#sequences = partitions.map(() => 0);
  }

  async run(durationMs: number) {
    const latencies: number[] = [];
    const until = performance.now() + durationMs;
    let bytes = 0;
    let acks = 0;
    const loop = async () => {
      while (performance.now() < until) {
        const items = this.#items();
        const started = performance.now();
        const outcomes = await this.#opened.log.append(items);
        latencies.push(performance.now() - started);
        for (const [n, outcome] of outcomes.entries()) {
          if (outcome.errorCode !== 0) throw new Error(`error ${outcome.errorCode}`);
          bytes += items[n]!.bytes.length;
          acks += 1;
        }
      }
    };
    await Promise.all(Array.from({ length: this.#scenario.inFlight }, loop));
    return { bytes, acks, latencies: Float64Array.from(latencies) };
  }

  #items(): AppendItem[] {
    return Array.from({ length: this.#scenario.spread }, () => {
      const p = this.#next++ % this.#templates.length;
      const baseSequence = this.#sequences[p]!;
      this.#sequences[p] = baseSequence + this.#scenario.recordsPerBatch;
      return { ...this.#templates[p]!, baseSequence };
    });
  }
}

const seconds = Number(process.argv[2] ?? 5);
const only = process.argv[3];
for (const scenario of SCENARIOS)
  if (only === undefined || scenario.name.includes(only)) await measure(scenario);

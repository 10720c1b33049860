// Strangers read and check tables that maintenance has been at: compacted with deletes of another engine before and after,
// expired, v2 and v3, partitioned and sorted. Made without sockets; fsck wants no orphan, the readers must agree.
// The checkers come from a folder of oracles (ORACLES=…); without it there is nobody to ask.
//   node_modules/.bin/node test/oracles/maintained.ts
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import { seededIds, seededPrng } from '../../src/base/prng.ts';
import { LocalObjectStore } from '../../src/storage/objects/index.ts';
import { Bench } from '../../src/table-topic/testing/bench.ts';
import { ForeignWriter } from '../../src/table-topic/testing/foreign-writer.ts';

const oracles = resolve(
  process.env['ORACLES'] ?? join(import.meta.dirname, '..', '..', '..', 'shared', 'oracles'),
);
if (!existsSync(join(oracles, 'fsck.py'))) {
  process.stdout.write(`skipped: no oracles at ${oracles}\n0 passed, 0 failed, 1 skipped\n`);
  process.exit(0);
}

interface Case {
  readonly name: string;
  readonly configs: Readonly<Record<string, string>>;
  readonly deletes: boolean;
  /** ClickHouse reads no deletion vectors. */
  readonly engines: string;
}

const CASES: readonly Case[] = [
  { name: 'v2', configs: {}, deletes: true, engines: 'pyiceberg,duckdb,chdb' },
  {
    name: 'v3',
    configs: { 'table.topic.format.version': '3' },
    deletes: true,
    engines: 'pyiceberg,duckdb',
  },
  {
    name: 'parts',
    configs: {
      'table.topic.partition.by': '[bucket(_kafka_offset, 3)]',
      'table.topic.sort.by': '[_kafka_value desc]',
    },
    deletes: false,
    engines: 'pyiceberg,duckdb,chdb',
  },
];

const folder = mkdtempSync(join(tmpdir(), 'floe-maintained-'));
const ids = seededIds(seededPrng(1));
const bench = await Bench.open({
  store: await LocalObjectStore.open(folder, { clock: systemClock, ids }),
});
bench.start();
let failed = 0;
try {
  for (const one of CASES) {
    const location = await maintained(one);
    const fsck = ask('fsck.py', [location, '--strict', '--no-equality-deletes']);
    const read = ask('read.py', [location, '--engines', one.engines]);
    failed += fsck + read;
    process.stdout.write(`${one.name}: ${fsck + read === 0 ? 'passed' : 'FAILED'}\n`);
  }
} finally {
  await bench.stop();
  rmSync(folder, { recursive: true });
}
process.stdout.write(`${2 * CASES.length - failed} passed, ${failed} failed, 0 skipped\n`);
process.exit(failed === 0 ? 0 : 1);

/** A table with a history; returns its folder. */
async function maintained({ name, configs, deletes }: Case): Promise<string> {
  const topic = await bench.topic(name, {
    'table.topic.convert.value.type': 'string',
    'table.topic.expire.snapshot.retain.last': '2',
    ...configs,
  });
  for (let n = 0; n < 9; n += 1) {
    const records = Array.from({ length: 200 }, (_, i) => ({
      value: i % 7 === 0 ? null : `v${n}-${i}`,
      key: `k${i}`,
    }));
    bench.produce(topic, records);
    await bench.tables.commit(name);
  }
  const identifier = { namespace: ['kafka'], name };
  const { catalog, warehouse } = bench;
  const now = () => systemClock.now();
  const writer = new ForeignWriter(
    { catalog, warehouse, ids, prng: seededPrng(9), now },
    identifier,
  );
  if (deletes) await writer.deletePositions(40);
  await bench.tables.maintain(name, 'compact');
  if (deletes) await writer.deletePositions(5);
  bench.produce(topic, [{ value: 'last' }]);
  await bench.tables.commit(name);
  await bench.tables.maintain(name, 'expire');
  return (await catalog.loadTable(identifier)).metadata.location.replace('file://', '');
}

/** 0 when the oracle is content. */
function ask(script: string, more: readonly string[]): number {
  const { status, stdout, stderr } = spawnSync(
    join(oracles, 'env.sh'),
    ['python', join(oracles, script), ...more],
    { encoding: 'utf8' },
  );
  if (status === 0) return 0;
  process.stdout.write(`${script} ${more.join(' ')}\n${stdout}\n${stderr}\n`);
  return 1;
}

// Spark works on our tables while we do: keyed changes go in through an ordinary Kafka client and Floe compacts, and at
// the same time Spark deletes, updates, compacts and expires. In the end all engines read what the log says, less what
// Spark took. v2 and v3. Spark is large (about 700 MB at first use), so this is no part of the gate.
//   npm run oracles:spark [-- --changes 6000]
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import kafkajs from 'kafkajs';
import { seededPrng } from '../../src/base/prng.ts';
import { type ChildNode, startChild } from '../../src/cli/child.ts';

const root = join(import.meta.dirname, '..', '..');
const oracles = resolve(process.env['ORACLES'] ?? join(root, '..', 'shared', 'oracles'));
const { values: args } = parseArgs({ options: { changes: { type: 'string', default: '6000' } } });
if (!existsSync(join(oracles, 'spark', 'spark.sh'))) {
  process.stdout.write(`skipped: no oracles at ${oracles}\n0 passed, 0 failed, 1 skipped\n`);
  process.exit(0);
}

let passed = 0;
let failed = 0;
function note(ok: boolean, what: string): void {
  if (ok) passed += 1;
  else failed += 1;
  process.stdout.write(`${ok ? 'ok  ' : 'FAIL'} ${what}\n`);
}

interface Row {
  readonly id: string;
  readonly n: number;
  readonly owner: string;
}

/** Ids that only Spark changes once they are in. */
const FOREIGN = 400;
const KEYS = 700;

/** Python for Spark: every statement a foreign engine may send, between our commits. */
function sparkScript(table: string): string {
  return `
import time
sql = spark.sql
t = '${table}'
def retry(q):
    for attempt in range(30):
        try:
            return sql(q)
        except Exception as e:
            # Spark reads the table twice for a DELETE and gives up when somebody committed in between.
            known = ('conflict', 'commit', 'concurrently modified')
            if attempt == 29 or not any(word in str(e).lower() for word in known):
                raise
            time.sleep(0.2)
retry(f"delete from {t} where owner = 'spark' and n % 4 = 0")
retry(f"call floe.system.rewrite_data_files(table => '{t}', options => map('min-input-files', '2', 'partial-progress.enabled', 'true'))")
retry(f"update {t} set owner = 'updated' where owner = 'spark' and n % 4 = 1")
retry(f"call floe.system.rewrite_manifests('{t}')")
retry(f"delete from {t} where owner = 'spark' and n % 4 = 2")
retry(f"call floe.system.rewrite_position_delete_files('{t}')")
retry(f"call floe.system.expire_snapshots(table => '{t}', retain_last => 20)")
print('spark is done')
`;
}

/** What went wrong, without Java's stack. */
function faultsIn(said: string): string {
  const lines = said.split('\n').filter((line) => /Exception|Error|Caused by/.test(line));
  return lines
    .slice(0, 12)
    .map((line) => `${line.slice(0, 400)}\n`)
    .join('');
}

async function run(node: ChildNode, format: string, folder: string): Promise<void> {
  const topic = `shared_v${format}`;
  const kafka = new kafkajs.Kafka({
    brokers: [node.addresses.kafka],
    logLevel: kafkajs.logLevel.NOTHING,
  });
  const configs = {
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': 'json',
    'table.topic.convert.key.type': 'string',
    'table.topic.upsert.enable': 'true',
    'table.topic.id.columns': '[id]',
    'table.topic.format.version': format,
    // Often enough to meet Spark's statements, seldom enough for one of them to fit in between.
    'table.topic.commit.interval.ms': '4000',
    'table.topic.compact.interval.ms': '2000',
    'table.topic.compact.min.input.files': '4',
  };
  const admin = kafka.admin();
  await admin.connect();
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
  await admin.createTopics({ topics: [{ topic, numPartitions: 3, configEntries }] });
  await admin.disconnect();
  const producer = kafka.producer();
  await producer.connect();
  const commit = () =>
    fetch(`http://${node.addresses.http}/v1/tables/${topic}/commit`, { method: 'POST' });
  const send = (rows: readonly Row[]) =>
    producer.send({
      topic,
      messages: rows.map((row) => ({ key: row.id, value: JSON.stringify(row) })),
      acks: -1,
    });

  const rows = new Map<string, Row>();
  const foreign = Array.from({ length: FOREIGN }, (_, n) => ({ id: `s${n}`, n, owner: 'spark' }));
  await send(foreign);
  await commit();
  for (const row of foreign) {
    if (row.n % 2 === 0) continue;
    rows.set(row.id, row.n % 4 === 1 ? { ...row, owner: 'updated' } : row);
  }

  const script = join(folder, `${topic}.py`);
  writeFileSync(script, sparkScript(`kafka.${topic}`));
  const spark = spawn(join(oracles, 'spark', 'spark.sh'), ['-p', script], {
    env: { ...process.env, FLOE_CATALOG: `http://${node.addresses.catalog}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [spark.stdout, spark.stderr])
    stream.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
  let sparkRuns = true;
  const ended = once(spark, 'exit').then(([code]) => {
    sparkRuns = false;
    return code as number;
  });
  const prng = seededPrng(Number(format));
  let sent = 0;
  // As long as Spark works, and at least as many changes as asked for.
  for (; sparkRuns || sent < Number(args.changes); sent += 200) {
    const batch = Array.from({ length: 200 }, (_, n) => {
      const id = `k${prng.int(KEYS)}`;
      return { id, n: sent + n, owner: 'floe' };
    });
    for (const row of batch) rows.set(row.id, row);
    await send(batch);
  }
  const code = await ended;
  note(code === 0, `${topic}: Spark's statements beside ${sent} changes`);
  if (code !== 0) process.stdout.write(faultsIn(said));
  await commit();
  await producer.disconnect();

  const expected = join(folder, `${topic}.jsonl`);
  writeFileSync(expected, [...rows.values()].map((row) => `${JSON.stringify(row)}\n`).join(''));
  const engines = format === '2' ? 'pyiceberg,duckdb,chdb,spark' : 'pyiceberg,duckdb,spark';
  const table = ['--catalog', `http://${node.addresses.catalog}`, `kafka.${topic}`];
  const ask = (tool: string, more: readonly string[]) => {
    const argv = ['python', join(oracles, tool), ...table, ...more];
    const done = spawnSync(join(oracles, 'env.sh'), argv, { encoding: 'utf8' });
    if (done.status !== 0) process.stdout.write(`${done.stdout}${done.stderr}`.slice(-4_000));
    return done.status === 0;
  };
  const read = ['--expect', expected, '--columns', 'id,n,owner', '--engines', engines];
  note(ask('read.py', read), `${topic}: ${engines} read what the log and Spark say`);
  note(ask('fsck.py', []), `${topic}: fsck`);
}

const folder = mkdtempSync(join(tmpdir(), 'floe-spark-'));
try {
  const node = await startChild(join(folder, 'data'), []);
  try {
    for (const format of ['2', '3']) await run(node, format, folder);
  } finally {
    await node.stop();
  }
} catch (caught) {
  note(false, String(caught));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exit(failed === 0 ? 0 : 1);

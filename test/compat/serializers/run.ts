// The official serializers of confluent-kafka (Python) against a fresh node: every format, the schema's id before the
// value and its GUID in a header. The tables must hold what was sent.
//   PYTHON=… node test/compat/serializers/run.ts      (a Python with confluent-kafka[avro,json,protobuf,schemaregistry]
//   and grpcio-tools; skipped when there is none)
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild } from '../../../src/cli/child.ts';

const python = process.env['PYTHON'] ?? 'python3';
const COUNT = 500;
const probe = spawnSync(python, [
  '-c',
  'import grpc_tools, confluent_kafka.schema_registry.protobuf, confluent_kafka.schema_registry.json_schema',
]);
if (probe.status !== 0) {
  process.stdout.write(`skipped: ${python} has no confluent-kafka with serializers\n`);
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), 'floe-serializers-'));
const node = await startChild(join(folder, 'data'), []);
const { kafka, registry, http } = node.addresses as Record<string, string>;
let failed = 0;

function run(command: string, args: readonly string[]): void {
  const { status } = spawnSync(command, args, { stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed`);
}

async function post(path: string, body: unknown): Promise<unknown> {
  const response = await fetch(`http://${http}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

function check(name: string, found: unknown, wanted: unknown): void {
  const same = JSON.stringify(found) === JSON.stringify(wanted);
  if (!same) failed += 1;
  const detail = same ? '' : `: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`;
  process.stdout.write(`${same ? 'ok  ' : 'FAIL'} ${name}${detail}\n`);
}

try {
  const generated = [
    '-m',
    'grpc_tools.protoc',
    `-I${import.meta.dirname}`,
    `--python_out=${folder}`,
  ];
  run(python, [...generated, 'order.proto']);
  const main = join(import.meta.dirname, '..', '..', '..', 'src', 'cli', 'main.ts');
  for (const name of ['avro', 'protobuf', 'json']) {
    for (const where of ['prefix', 'header']) {
      const configs = [
        'table.topic.enable=true',
        'table.topic.commit.interval.ms=1000',
        'table.topic.convert.value.type=by_schema_id',
      ].flatMap((config) => ['--config', config]);
      const flags = ['--disable-warning=ExperimentalWarning', main, 'topics', 'create'];
      run(process.execPath, [...flags, `${name}_${where}`, ...configs, '--server', kafka!]);
    }
  }
  run(python, [join(import.meta.dirname, 'produce.py'), kafka!, `http://${registry}`, folder]);
  const sql = async (query: string) => await post('/v1/sql', { query });
  for (const where of ['prefix', 'header']) {
    for (const name of ['avro', 'protobuf', 'json']) {
      const answer = await sql(
        `SELECT count(*)::INT AS n, count(DISTINCT id)::INT AS d, sum(id)::INT AS s FROM ${name}_${where}`,
      );
      const sum = (COUNT * (COUNT - 1)) / 2;
      check(`${name} by ${where}`, rowsOf(answer), [[COUNT, COUNT, sum]]);
    }
    const order = await sql(
      `SELECT id::INT, customer.name, epoch("at")::BIGINT::INT, note, card, cash::VARCHAR,
        prices[2]::INT, status FROM protobuf_${where} WHERE id IN (6, 7) ORDER BY id`,
    );
    check(`protobuf by ${where}, cell by cell`, rowsOf(order), [
      [6, 'name 6', 1_700_000_006, 'noted', null, String(2n ** 63n + 6n), 6, 'NEW'],
      [7, 'name 7', 1_700_000_007, null, null, null, 7, 'PAID'],
    ]);
  }
} finally {
  await node.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed === 0 ? 0 : 1);

/** Rows of an answer as lists of cells. */
function rowsOf(answer: unknown): unknown[][] {
  const { rows } = answer as { rows: (unknown[] | Record<string, unknown>)[] };
  return rows.map((row) => (Array.isArray(row) ? row : Object.values(row)));
}

// Look-ups per second of the schema registry as producers and consumers make them: over HTTP on keep-alive connections,
// from one child process that is asked and this one that asks. By id (what a consumer does), by subject and schema
// (what a producer does), the newest of a subject. 1,000 schemas of each format.
// Run: node bench/registry.ts [seconds a line] [connections]       prints look-ups a second, and per CPU second of the node
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild } from '../src/cli/child.ts';

const seconds = Number(process.argv[2] ?? 5);
const connections = Number(process.argv[3] ?? 16);
const SCHEMAS = 1_000;

const agent = new Agent({ keepAlive: true, maxSockets: connections });

interface Ask {
  readonly path: string;
  readonly body?: string;
}

/** One request; the parsed answer. */
function ask(base: URL, { path, body }: Ask): Promise<{ id: number }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ id: number }>();
  const headers = { 'content-type': 'application/vnd.schemaregistry.v1+json' };
  const method = body === undefined ? 'GET' : 'POST';
  const sent = request(new URL(path, base), { agent, method, headers }, (response) => {
    const parts: Buffer[] = [];
    response.on('data', (part: Buffer) => parts.push(part));
    response.on('end', () => {
      const text = Buffer.concat(parts).toString('utf8');
      if (response.statusCode === 200) resolve(JSON.parse(text) as { id: number });
      else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
    });
  });
  sent.on('error', reject);
  sent.end(body);
  return promise;
}

const fields = Array.from({ length: 20 }, (_, at) => at);

/** A schema of 20 fields, in the text that a client sends. */
function schemaOf(type: string, at: number): string {
  switch (type) {
    case 'AVRO':
      return JSON.stringify({
        type: 'record',
        name: `R${at}`,
        namespace: 'bench',
        fields: fields.map((n) => ({
          name: `field_${n}`,
          type: ['null', 'string'],
          default: null,
        })),
      });
    case 'PROTOBUF':
      return `syntax = "proto3";\npackage bench;\nimport "google/protobuf/timestamp.proto";\nmessage R${at} {\n${fields.map((n) => `  string field_${n} = ${n + 1};\n`).join('')}  google.protobuf.Timestamp at = 100;\n}\n`;
    default:
      return JSON.stringify({
        type: 'object',
        title: `R${at}`,
        properties: Object.fromEntries(fields.map((n) => [`field_${n}`, { type: 'string' }])),
      });
  }
}

/** CPU seconds that the process has used. */
function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const columns = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(columns[11]) + Number(columns[12])) / 100;
}

/** Asks that aren't counted: by then the code that they run is compiled, on both sides. */
const WARM_UP = 3_000;

/** Asks for `seconds`, as fast as the connections allow. */
async function measure(name: string, base: URL, pid: number, next: (at: number) => Ask) {
  let warm = 0;
  const warmUp = async () => {
    while (warm < WARM_UP) await ask(base, next(warm++ % SCHEMAS));
  };
  await Promise.all(Array.from({ length: connections }, warmUp));
  const [cpu, started] = [cpuOf(pid), performance.now()];
  let done = 0;
  const worker = async () => {
    while (performance.now() - started < seconds * 1_000) {
      await ask(base, next(done % SCHEMAS));
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  const elapsed = (performance.now() - started) / 1_000;
  const used = cpuOf(pid) - cpu;
  const rate = (done / elapsed).toFixed(0).padStart(7);
  const perCpu = (done / used).toFixed(0).padStart(7);
  console.log(`${name.padEnd(44)} ${rate} look-ups/s ${perCpu} per CPU second of the node`);
}

const folder = mkdtempSync(join(tmpdir(), 'floe-bench-'));
const node = await startChild(join(folder, 'data'));
try {
  const base = new URL(`http://${node.addresses.registry}`);
  const ids: number[] = [];
  for (const type of ['AVRO', 'PROTOBUF', 'JSON']) {
    // Made once: a producer has its schema as text and doesn't write it anew for each look-up.
    const bodies = Array.from({ length: SCHEMAS }, (_, at) =>
      JSON.stringify({ schemaType: type, schema: schemaOf(type, at) }),
    );
    const started = performance.now();
    for (let at = 0; at < SCHEMAS; at += 1) {
      const path = `/subjects/${type}-${at}-value/versions`;
      ids.push((await ask(base, { path, body: bodies[at]! })).id);
    }
    const rate = (SCHEMAS / (performance.now() - started)) * 1_000;
    console.log(
      `${`${type}: register, one by one`.padEnd(44)} ${rate.toFixed(0).padStart(7)} a second`,
    );
    await measure(`${type}: by subject and schema`, base, node.pid, (at) => ({
      path: `/subjects/${type}-${at}-value`,
      body: bodies[at]!,
    }));
    await measure(`${type}: newest of a subject`, base, node.pid, (at) => ({
      path: `/subjects/${type}-${at}-value/versions/latest`,
    }));
  }
  await measure('by id', base, node.pid, (at) => ({ path: `/schemas/ids/${ids[at * 3]}` }));
} finally {
  agent.destroy();
  await node.stop();
  rmSync(folder, { recursive: true, force: true });
}

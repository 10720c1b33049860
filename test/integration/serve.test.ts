// `floe serve` as its users meet it: the ready line, the errors at start, the signals, a restart.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { startChild } from '../../src/cli/child.ts';

const folder = mkdtempSync(join(tmpdir(), 'floe-serve-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'cli', 'main.ts');

/** Runs a command to its end. */
function floe(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    const flags = [
      '--disable-warning=ExperimentalWarning',
      '--disable-warning=TimeoutNegativeWarning',
    ];
    const child = spawn(process.execPath, [...flags, MAIN, ...args]);
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk) => (out += chunk));
    child.stderr.on('data', (chunk) => (err += chunk));
    child.once('exit', (code) => resolve({ code: code ?? -1, out, err }));
  });
}

const free = [
  '--kafka',
  '127.0.0.1:0',
  '--registry',
  '127.0.0.1:0',
  '--catalog',
  '127.0.0.1:0',
  '--http',
  '127.0.0.1:0',
];

test('records and topics survive a kill and a clean stop; SIGTERM exits 0', {
  timeout: 60_000,
}, async () => {
  const dataDir = join(folder, 'restart');
  const first = await startChild(dataDir);
  const created = await floe(
    'topics',
    'create',
    'letters',
    '--partitions',
    '2',
    '--server',
    first.addresses.kafka,
  );
  expect(created).toMatchObject({ code: 0, out: 'created topic letters with 2 partitions\n' });
  const lines = join(folder, 'lines.txt');
  const { writeFile } = await import('node:fs/promises');
  await writeFile(lines, 'a\nb\nc\n');
  await floe('produce', 'letters', '--file', lines, '--server', first.addresses.kafka);
  await first.kill();

  const second = await startChild(dataDir);
  const read = await floe('consume', 'letters', '--until-end', '--server', second.addresses.kafka);
  expect(read.out.split('\n').filter(Boolean).sort()).toEqual(['a', 'b', 'c']);
  const health = await fetch(`http://${second.addresses.http}/healthz`);
  expect(health.status).toBe(200);
  const metrics = await (await fetch(`http://${second.addresses.http}/metrics`)).text();
  expect(metrics).toMatch(/^# HELP floe_/m);
  await expect(second.stop()).resolves.toBe(0);
});

test('a data directory has one process', { timeout: 60_000 }, async () => {
  const dataDir = join(folder, 'shared');
  const node = await startChild(dataDir);
  const second = await floe('serve', '--data-dir', dataDir, ...free);
  expect(second.code).toBe(1);
  expect(second.err.trim().split('\n')).toHaveLength(1);
  expect(second.err).toContain(dataDir);
  await node.stop();
});

test('a taken port is one clear line', { timeout: 30_000 }, async () => {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as { port: number };
  for (const flag of ['--kafka', '--http']) {
    const args = [...free];
    args[args.indexOf(flag) + 1] = `127.0.0.1:${port}`;
    const failed = await floe('serve', '--data-dir', join(folder, `taken${flag}`), ...args);
    expect(failed.code).toBe(1);
    expect(failed.err).toBe(
      `floe: ${flag} 127.0.0.1:${port}: the address is in use; choose another one or stop what listens there\n`,
    );
  }
  await new Promise((done) => server.close(done));
});

test.each([
  [['--set', 'num.partitions=many'], 'floe: num.partitions: "many" is not a whole number'],
  [['--set', 'no.such.setting=1'], 'floe: unknown setting "no.such.setting"'],
  [
    ['--storage', 'ftp://x'],
    'floe: --storage: "ftp://x" is not file:///folder or s3://bucket/prefix',
  ],
  [['--kafka', 'nowhere'], 'floe: --kafka: "nowhere" is not HOST:PORT'],
])('serve %j is refused in one line', async (args, message) => {
  const failed = await floe(
    'serve',
    '--data-dir',
    join(folder, 'refused'),
    ...free.filter((_, i) => i > 1 || args[0] !== '--kafka'),
    ...args,
  );
  expect(failed.code).toBe(1);
  expect(failed.err.trim().split('\n')).toHaveLength(1);
  expect(failed.err).toContain(message);
});

test('commands say when nobody answers, and --help lists them', {
  timeout: 60_000,
}, async () => {
  const nobody = await floe('topics', 'list', '--server', '127.0.0.1:1');
  expect(nobody).toMatchObject({
    code: 1,
    err: 'floe: nothing answers at 127.0.0.1:1: is Floe running there? (--server HOST:PORT)\n',
  });
  const tables = await floe('tables', 'list', '--server', '127.0.0.1:1');
  expect(tables.err).toContain('nothing answers at http://127.0.0.1:1');
  const help = await floe('--help');
  for (const command of [
    'serve',
    'topics',
    'produce',
    'consume',
    'groups',
    'tables',
    'sql',
    'demo',
  ]) {
    expect(help.out).toContain(`\n  ${command}`);
  }
});

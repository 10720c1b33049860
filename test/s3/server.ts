// A real S3 for tests: one that is running (FLOE_S3_ENDPOINT), or a moto_server started here on a free loopback
// port and ended by its own handle. Everything in it is gone when it stops.
// Any access key is taken. It answers one request at a time: no measure of speed.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { endTogether } from '../../src/cli/child.ts';

const run = promisify(execFile);
const VENV = join(process.env['FLOE_CACHE'] ?? join(homedir(), '.cache', 'floe'), 'test-s3');
const MOTO = join(VENV, 'bin', 'moto_server');
const ONE_AT_A_TIME = fileURLToPath(new URL('one_at_a_time.py', import.meta.url));
const START_LIMIT_MS = 30_000;

export interface TestS3 {
  /** `http://127.0.0.1:PORT` */
  readonly endpoint: string;
  /** Makes a bucket of a new name. */
  bucket(name?: string): Promise<string>;
  stop(): Promise<void>;
}

export const TEST_ACCESS_KEY = 'floe';
export const TEST_SECRET_KEY = 'floe-secret';

/** Makes the Python environment that holds moto; a second call costs nothing. */
export async function installS3(): Promise<void> {
  if (existsSync(MOTO)) return;
  await run('python3', ['-m', 'venv', VENV]);
  await run(join(VENV, 'bin', 'pip'), [
    'install',
    '-q',
    '--disable-pip-version-check',
    'moto[server]',
  ]);
}

/** Undefined when there is neither a running server nor an installed one. */
export async function startS3(): Promise<TestS3 | undefined> {
  const given = process.env['FLOE_S3_ENDPOINT'];
  if (given !== undefined && given !== '') return connect(given, async () => {});
  if (!existsSync(MOTO)) return undefined;
  const child = spawn(join(VENV, 'bin', 'python'), [ONE_AT_A_TIME, '-H', '127.0.0.1', '-p', '0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // Short pages, so that small tests turn them.
    env: { ...process.env, MOTO_S3_DEFAULT_MAX_KEYS: '10' },
  });
  endTogether(child);
  const endpoint = await announced(child);
  return connect(endpoint, () => end(child));
}

/** Werkzeug prints the address once it listens, so port 0 needs no guessing. */
function announced(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    const timer = setTimeout(() => fail('said nothing in time'), START_LIMIT_MS);
    const fail = (why: string) => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      reject(new Error(`moto_server ${why}: ${output}`));
    };
    const look = (chunk: Buffer) => {
      output += chunk;
      const found = /Running on (http:\/\/127\.0\.0\.1:\d+)/.exec(output);
      if (found === null) return;
      clearTimeout(timer);
      output = '';
      resolve(found[1]!);
    };
    child.stdout?.on('data', look);
    child.stderr?.on('data', look);
    child.once('error', () => fail('did not start'));
    child.once('exit', () => fail('ended'));
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 3_000);
  await gone;
  clearTimeout(timer);
}

function connect(endpoint: string, stop: () => Promise<void>): TestS3 {
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: TEST_ACCESS_KEY, secretAccessKey: TEST_SECRET_KEY },
  });
  return {
    endpoint,
    async bucket(name = `floe-${process.pid}-${Math.random().toString(36).slice(2, 10)}`) {
      await client.send(new CreateBucketCommand({ Bucket: name }));
      return name;
    },
    async stop() {
      client.destroy();
      await stop();
    },
  };
}

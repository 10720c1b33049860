// A cluster's metadata on the move, end to end and by the command line alone, over HTTP to an S3 and over TCP to a real
// PostgreSQL: a node's data directory becomes a cluster (migrate), a cluster is backed up into a folder and a bucket and
// comes back on a fresh database (backup, restore), and each of them is killed at every step and run again. Afterwards
// brokers serve what they should: every record, table, offset. Mistakes are answered by one line with a remedy.
//   npm run moves [-- --on double,moto] [--short]
// `moto` is the foreign S3 of `npm run test:s3`, left out where it isn't installed. `--short`: a migration is killed at three
// of its eight steps.
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { type ChildNode, startChild } from '../../src/cli/child.ts';
import { eachOf } from '../../src/cli/migrate/objects.ts';
import { startPostgres, type TestServer } from '../../src/metadata/postgres/testing.ts';
import { type DoubleProcess, latencyOf, startDoubleProcess } from '../s3/double-process.ts';
import { startS3, TEST_ACCESS_KEY, TEST_SECRET_KEY } from '../s3/server.ts';
import { Checks, told } from './checks.ts';
import { BEFORE, countRows, fill, more, readerOffset, readKeys, TABLES } from './contents.ts';
import { floe, type Ran, type RunOptions } from './floe.ts';

const { values: args } = parseArgs({
  options: {
    on: { type: 'string', default: 'double,moto' },
    short: { type: 'boolean', default: false },
  },
});

const checks = new Checks();
const { check } = checks;

/** An S3, a PostgreSQL, and how commands reach them. */
class Place {
  readonly postgres: TestServer;
  readonly folder: string;
  readonly #s3: readonly string[];
  #folders = 0;

  constructor(postgres: TestServer, folder: string, endpoint: string) {
    this.postgres = postgres;
    this.folder = folder;
    const settings = {
      's3.path.style': 'true',
      's3.region': 'us-east-1',
      's3.access.key.id': TEST_ACCESS_KEY,
      's3.secret.access.key': TEST_SECRET_KEY,
    };
    this.#s3 = [
      ...['--s3-endpoint', endpoint],
      ...Object.entries(settings).flatMap(([name, value]) => ['--set', `${name}=${value}`]),
    ];
  }

  run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    return floe([command, ...this.#s3, ...args], options);
  }

  /** A broker with nothing in its folder. */
  serve(metadata: string, storage: string, args: readonly string[] = []): Promise<ChildNode> {
    const dataDir = join(this.folder, `broker-${++this.#folders}`);
    return startChild(dataDir, [
      ...['--metadata', metadata, '--storage', storage],
      ...this.#s3,
      ...args,
    ]);
  }
}

/** Ends with success, or says why not. */
async function succeeds(what: string, running: Promise<Ran>): Promise<Ran> {
  const ran = await running;
  check(ran.code === 0, what, told(ran));
  return ran;
}

/** Fails in one line that says what is expected of it. */
async function refuses(what: string, running: Promise<Ran>, says: RegExp): Promise<void> {
  const ran = await running;
  const lines = ran.err.trimEnd().split('\n');
  check(ran.code === 1 && lines.length === 1 && says.test(ran.err), what, told(ran));
}

// ------------------------------------------------------------------ migrate

/** A request under way, by its number, and lines that say what is done: all where it is killed, and those of `--short`. */
const REQUESTS = [
  ['put', 1],
  ['put', 6],
  ['get', 4],
] as const;
const DONE = ['log sealed', 'objects of the log', 'files of tables', 'metadata:', 'metadata equal'];
const SHORT = { requests: REQUESTS.slice(1, 2), done: ['objects of the log', 'metadata:'] };

/** Kills a migration at each of its steps; none of them ends. */
async function migrateInSteps(place: Place, move: readonly string[], double?: DoubleProcess) {
  const { requests, done } = args.short ? SHORT : { requests: REQUESTS, done: DONE };
  for (const [verb, number] of double === undefined ? [] : requests) {
    // A request that never ends: killed while it is under way.
    await double!.fault({ kind: 'never', verbs: [verb], after: number - 1 });
    const ran = await place.run('migrate', move, { killWhen: sleep(2_500) });
    check(ran.code === -1, `killed while ${verb} number ${number} is under way`, told(ran));
    await double!.clearFaults();
  }
  for (const step of done) {
    const ran = await place.run('migrate', move, { killAt: (line) => line.startsWith(step) });
    check(ran.code === -1, `killed after "${step}"`, told(ran));
  }
}

async function migrate(
  place: Place,
  options: { dataDir: string; storage: string; metadata: string; double?: DoubleProcess },
) {
  const { dataDir, storage, metadata, double } = options;
  const move = ['--data-dir', dataDir, '--storage', storage, '--metadata', metadata];
  await migrateInSteps(place, move, double);
  const done = await succeeds(
    'migrate goes on to its end',
    place.run('migrate', [...move, '--verify', 'all']),
  );
  check(/metadata equal: \d+ tables row by row/.test(done.out), 'rows are equal', told(done));
  check(/batches of [1-9]\d* objects checked/.test(done.out), 'batches are checked', told(done));
  for (const { topic, rows } of TABLES)
    check(
      new RegExp(`table kafka\\.${topic}: \\d+ data files`).test(done.out) && rows > 0,
      `table ${topic} is compared`,
      told(done),
    );
  await succeeds('a migration run again proves it once more', place.run('migrate', move));
}

// ------------------------------------------------------------------ what brokers serve

async function serves(
  what: string,
  node: ChildNode,
  keys: readonly string[],
  rows: Readonly<Record<string, number>>,
) {
  const found = await readKeys(node);
  check(
    JSON.stringify(found) === JSON.stringify(keys.toSorted()),
    `${what}: its ${keys.length} records, each once`,
    `found ${found.length}: ${found.slice(0, 20)}`,
  );
  for (const [table, count] of Object.entries(rows)) {
    const counted = await countRows(node, table);
    check(counted === count, `${what}: ${count} rows in ${table}`, `found ${counted}`);
  }
  const offset = await readerOffset(node);
  check(offset === BEFORE.readerOffset, `${what}: its group's offset`, `found ${offset}`);
}

const ANYWHERE = ['kafka', 'registry', 'catalog', 'http'].flatMap((name) => [
  `--${name}`,
  '127.0.0.1:0',
]);
const rowsBefore = Object.fromEntries(TABLES.map(({ topic, rows }) => [topic, rows]));
const rowsLater = Object.fromEntries(TABLES.map(({ topic, rowsLater: rows }) => [topic, rows]));

interface Back {
  readonly from: string;
  /** The database. */
  readonly fresh: string;
  readonly storage: string;
  readonly double: DoubleProcess | undefined;
}

/** Killed half way, run again, proved, served, confirmed. */
async function restoreBucket(place: Place, { from, fresh, storage, double }: Back) {
  const stores = ['--metadata', fresh, '--storage', storage];
  if (double !== undefined) {
    await double.fault({ kind: 'never', verbs: ['get'], key: 'backups/', after: 6 });
    const ran = await place.run('restore', [from, ...stores], { killWhen: sleep(3_000) });
    check(ran.code === -1, 'a restore is killed half way', told(ran));
    await double.clearFaults();
  }
  const ran = await place.run('restore', [from, ...stores]);
  const listed = /written after the backup: [1-9]\d* objects/.test(ran.out);
  check(ran.code === 0 && listed, 'restore from the bucket', told(ran));
  await refuses('a restore over it', place.run('restore', [from, ...stores]), /into an empty one/);
  const doubt = await place.run('doctor', stores);
  const doubted = /restored.*not confirmed/.test(doubt.out);
  check(doubt.code === 1 && doubted, 'doctor: nobody confirmed it', told(doubt));
  const node = await place.serve(fresh, storage);
  await serves('the restored cluster', node, BEFORE.keys, rowsBefore);
  await node.stop();
  const sure = await place.run('doctor', [...stores, '--confirm']);
  check(sure.code === 0 && /restored.*confirmed/.test(sure.out), 'doctor --confirm', told(sure));
}

/** As a recovery to a point in time leaves it: the database itself, on a server. */
async function copyOf(metadata: string): Promise<string> {
  const [from, url] = [new URL(metadata), new URL(metadata)];
  const name = from.pathname.slice(1);
  url.pathname = '/postgres';
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}_copy TEMPLATE ${name}`);
  await client.end();
  url.pathname = `/${name}_copy`;
  return url.href;
}

// ------------------------------------------------------------------ the whole

async function moves(name: string, place: Place, double?: DoubleProcess, bucket = 'floe') {
  process.stdout.write(`\non ${name}\n`);
  const storage = `s3://${bucket}/cluster`;
  const metadata = await place.postgres.empty();
  const dataDir = join(place.folder, 'node');
  // Locations of tables name the folder: always the same one.
  rmSync(dataDir, { recursive: true, force: true });
  cpSync(join(place.folder, 'filled'), dataDir, { recursive: true });
  await migrate(place, { dataDir, storage, metadata, ...(double === undefined ? {} : { double }) });

  const past = await floe(['serve', '--data-dir', dataDir, ...ANYWHERE]);
  const isPast = past.code === 1 && past.err.includes('was moved to postgres:');
  check(isPast, 'the directory is served no more', told(past));
  const first = await place.serve(metadata, storage);
  const second = await place.serve(metadata, storage);
  await serves('the cluster', second, BEFORE.keys, rowsBefore);

  const stores = ['--metadata', metadata, '--storage', storage];
  const inBucket = `s3://${bucket}/backups/one`;
  const inFolder = join(place.folder, `backup-${name}`);
  if (double !== undefined) {
    await double.fault({ kind: 'never', verbs: ['put'], key: 'backups/', after: 4 });
    const ran = await place.run('backup', [inBucket, ...stores], { killWhen: sleep(3_000) });
    check(ran.code === -1, 'a backup is killed half way', told(ran));
    await double.clearFaults();
    await refuses(
      'half a backup is none',
      place.run('restore', [
        inBucket,
        '--storage',
        storage,
        '--metadata',
        await place.postgres.empty(),
      ]),
      /holds no manifest\.json: no backup, or one that was broken off/,
    );
  }
  await succeeds(
    'a backup into the bucket, brokers run',
    place.run('backup', [inBucket, ...stores]),
  );
  await succeeds('a backup into a folder', place.run('backup', [inFolder, ...stores]));
  await more(first);
  await refuses(
    'a migration once brokers have gone on',
    place.run('migrate', ['--data-dir', dataDir, ...stores]),
    /if brokers have used it since it was moved/,
  );
  await serves('the cluster goes on', second, [...BEFORE.keys, ...BEFORE.laterKeys], rowsLater);
  await Promise.all([first.stop(), second.stop()]);

  const fresh = await place.postgres.empty();
  await restoreBucket(place, { from: inBucket, fresh, storage, double });
  const other = await place.postgres.empty();
  const ran = await place.run('restore', [inFolder, '--metadata', other, '--storage', storage]);
  check(ran.code === 0, 'restore from the folder', told(ran));
  const recovered = await copyOf(metadata);
  const inPlace = ['--metadata', recovered, '--storage', storage];
  await succeeds(
    'a database that came back by its own means',
    place.run('restore', ['--in-place', ...inPlace]),
  );
  const doubt = await place.run('doctor', inPlace);
  check(
    doubt.code === 1 && /restored.*not confirmed/.test(doubt.out),
    'doctor: nobody confirmed it',
    told(doubt),
  );
  await mistakes(place, { metadata, storage, inFolder, dataDir });
}

interface Moved {
  readonly metadata: string;
  readonly storage: string;
  readonly inFolder: string;
  readonly dataDir: string;
}

async function mistakes(place: Place, { metadata, storage, inFolder, dataDir }: Moved) {
  const [empty, other] = [await place.postgres.empty(), await place.postgres.empty()];
  const away = new URL(empty);
  away.port = '1';
  const strange = await foreign(place);
  const at = (url: string) => ['--metadata', url, '--storage', storage];
  const elsewhere = storage.replace('cluster', 'elsewhere');
  const to = (url: string) => ['--metadata', url, '--storage', elsewhere];
  const [from, copied] = [
    ['--data-dir', dataDir],
    ['--data-dir', join(place.folder, 'filled')],
  ];
  const nowhere = join(place.folder, 'none');
  const asked: readonly (readonly [string, string, readonly string[], RegExp])[] = [
    [
      'a backup over a backup',
      'backup',
      [inFolder, ...at(metadata)],
      /holds a backup already: name an empty place/,
    ],
    [
      'a backup of an empty database',
      'backup',
      [nowhere, ...at(empty)],
      /no metadata of a cluster|belongs to no cluster/,
    ],
    [
      'a database that is away',
      'backup',
      [nowhere, ...at(away.href)],
      /127\.0\.0\.1:1\b.*--metadata/,
    ],
    [
      'an unknown kind of place',
      'backup',
      ['ftp://there/backup', ...at(metadata)],
      /ftp:.*s3:\/\//,
    ],
    ['a restore from nothing', 'restore', [nowhere, ...at(empty)], /holds no manifest\.json/],
    [
      'a restore into SQLite',
      'restore',
      [inFolder, '--data-dir', nowhere],
      /is a backup of postgres: name the database by --metadata/,
    ],
    [
      'a restore without a place',
      'restore',
      at(empty),
      /name the place of a backup, or say --in-place/,
    ],
    ['a restore without a store', 'restore', [inFolder, '--metadata', empty], /say --storage/],
    ['in place without a database', 'restore', ['--in-place', ...from], /name it by --metadata/],
    [
      'in place of an empty database',
      'restore',
      ['--in-place', ...at(empty)],
      /belongs to no cluster/,
    ],
    ['a migration without a target', 'migrate', from, /say where it goes/],
    [
      'a migration of nothing',
      'migrate',
      ['--data-dir', nowhere, ...at(empty)],
      /holds no metadata\.db/,
    ],
    [
      'a migration into the database of another',
      'migrate',
      [...copied, ...to(strange)],
      /belongs to cluster .*: name an empty database/,
    ],
    [
      'a data directory that was moved, with its tables',
      'migrate',
      [...copied, ...to(other)],
      /table kafka\.\w+ lies at .*move it back/,
    ],
    [
      'a bucket that is away',
      'migrate',
      [...copied, ...to(other), '--s3-endpoint', 'http://127.0.0.1:1'],
      /127\.0\.0\.1:1\b.*--s3-endpoint/,
    ],
  ];
  // One by one: several ask for the same directory, which is one process's at a time.
  await eachOf(asked, 1, ([what, command, args, says]) =>
    refuses(what, place.run(command, args), says),
  );
  const doubts = [
    ['the bucket of another cluster', at(strange), /do not belong together: name the bucket and/],
    ['a database that is away', at(away.href), /check --metadata: host, port/],
  ] as const;
  await eachOf(doubts, 2, async ([what, args, says]) => {
    const doctor = await place.run('doctor', args);
    check(doctor.code === 1 && says.test(doctor.out), `doctor: ${what}`, told(doctor));
  });
}

/** A database of another cluster. */
async function foreign(place: Place): Promise<string> {
  const metadata = await place.postgres.empty();
  const node = await place.serve(metadata, 's3://floe/foreign');
  await node.stop();
  return metadata;
}

const folder = mkdtempSync(join(tmpdir(), 'floe-moves-'));
const postgres = await startPostgres({ fsync: true });
const ends: (() => Promise<void>)[] = [() => postgres.stop()];
try {
  const node = await startChild(join(folder, 'node'));
  await fill(node);
  const moving = ['migrate', '--data-dir', join(folder, 'node'), '--storage', 's3://floe/cluster'];
  await refuses(
    'a migration of a node that runs',
    floe([...moving, '--metadata', postgres.url('none')]),
    /is in use|locked|running/,
  );
  // As after a crash: what was acknowledged is recovered, then moved.
  await node.kill();
  cpSync(join(folder, 'node'), join(folder, 'filled'), { recursive: true });
  check(true, 'a node alone was filled, and killed');
  for (const on of args.on.split(',')) {
    if (on === 'double') {
      const double = await startDoubleProcess({ latency: latencyOf(5, 2) });
      ends.push(() => double.stop());
      await moves(on, new Place(postgres, folder, double.endpoint), double);
    } else {
      const s3 = await startS3();
      if (s3 === undefined) continue;
      ends.push(() => s3.stop());
      await moves(on, new Place(postgres, folder, s3.endpoint), undefined, await s3.bucket());
    }
  }
} finally {
  for (const end of ends.toReversed()) await end();
  rmSync(folder, { recursive: true, force: true });
}
checks.end();

// The database put back to an earlier time under three running brokers, with producers and consumers at each: brokers find
// it out and end, nobody commits on what came back, `floe doctor` says what to do, and after `floe restore --in-place` the
// brokers go on from there. Every record acknowledged before that time is where it was; of those after it each is gone, and
// the restore says that there were any.
//   npm run put-back
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { kafkaClient } from '../../src/cli/kafka-client.ts';
import { kafkaError } from '../../src/protocol/errors.ts';
import { Checks, told } from './checks.ts';
import { TestCluster } from './cluster.ts';
import { floe } from './floe.ts';
import { follow, Ledger, produce } from './load.ts';

const LIMIT_MS = 60_000;
const ENOUGH = 20;
const HERE = '127.0.0.1';

const checks = new Checks();
const { check } = checks;

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const endMs = performance.now() + LIMIT_MS; !holds(); await sleep(50))
    if (performance.now() > endMs) throw new Error(`${what}: not within ${LIMIT_MS} ms`);
}

const folder = mkdtempSync(join(tmpdir(), 'floe-put-back-'));
const cluster = await TestCluster.start({ folder, brokers: 3, putMs: 30, getMs: 10 });
try {
  const { members, postgres, stores } = cluster;
  const { host, port } = postgres.address;
  const connectionString = `postgres://postgres@${host}:${port}/${postgres.name}`;
  const topics = members.map(({ nodeId }) => `by-${nodeId}`);
  const admin = kafkaClient(members[0]!.kafka).admin();
  await admin.connect();
  await admin.createTopics({ topics: topics.map((topic) => ({ topic, numPartitions: 1 })) });
  await admin.disconnect();

  const refused = new Map<number, number>();
  /** Clients of every broker, until it hangs up or they are told to stop. */
  function clients(ledgers: readonly Ledger[]) {
    const stop = new AbortController();
    let hungUp = 0;
    const ended = (caught: unknown) => {
      if (/closed the connection|ECONNRE/.test(String(caught))) hungUp += 1;
      else check(false, 'a client hears what it may', String(caught));
    };
    const running = ledgers.flatMap((ledger, n) => {
      const at = { port: members[n]!.port, from: HERE };
      const load = { ledger, bytes: 100, underWay: 1, pauseMs: 10 };
      const onRefused = (code: number) => refused.set(code, (refused.get(code) ?? 0) + 1);
      return [
        produce({ ...at, ...load, onAck() {}, onRefused }, stop.signal).catch(ended),
        follow(at, ledger, stop.signal).catch(ended),
      ];
    });
    return { stop, over: Promise.all(running), hungUp: () => hungUp };
  }
  const enough = (ledgers: readonly Ledger[], more: number) => {
    const before = ledgers.map(({ acked }) => acked);
    return until('records acknowledged at each broker', () =>
      ledgers.every(({ acked }, n) => acked > before[n]! + more),
    );
  };
  const lastCommit = async () => {
    const client = new pg.Client({ connectionString });
    await client.connect();
    const { rows } = await client.query<{ last: string }>(
      'SELECT last_commit AS last FROM log_counter',
    );
    await client.end();
    return rows[0]!.last;
  };

  const first = topics.map((topic) => new Ledger(topic));
  const early = clients(first);
  await enough(first, ENOUGH);
  await postgres.server!.save();
  const kept = first.map(({ acked }) => acked);
  await enough(first, ENOUGH);
  check(true, `acknowledged and lost later: ${first.map(({ acked }, n) => acked - kept[n]!)}`);
  await postgres.server!.putBack();
  const found = await lastCommit();
  await until('every broker has ended', () => members.every(({ ends }) => ends.length > 0));
  await early.over;
  for (const { ends, nodeId } of members)
    check(
      /put back to an earlier time|restore --in-place/.test(ends[0]!),
      `broker ${nodeId} ended and says why`,
      ends[0],
    );
  check(early.hungUp() === 6, 'clients saw their connections end', `${early.hungUp()} of 6`);
  const final = [...refused.keys()].map(kafkaError).filter(({ retriable }) => !retriable);
  check(
    final.length === 0,
    'clients saw retriable errors only',
    final.map(({ name }) => name).join(),
  );
  const now = await lastCommit();
  check(now === found, 'nobody committed on what came back', `${found}, then ${now}`);

  const doubt = await floe(['doctor', ...stores]);
  const says = /wrong +database +history +commit \d+ was made/.test(doubt.out);
  check(
    doubt.code === 1 && says && doubt.out.includes('floe restore --in-place'),
    'floe doctor says what to do',
    told(doubt),
  );
  // Each has been started again and again meanwhile.
  check(!members.some(({ up }) => up), 'none of them starts');
  const restored = await floe(['restore', '--in-place', ...stores]);
  check(
    /written after the backup: [1-9]\d* objects/.test(restored.out),
    'the restore tells of what is lost',
    told(restored),
  );
  const sure = await floe(['doctor', ...stores]);
  check(
    sure.code === 1 && /restored +from a backup, not confirmed/.test(sure.out),
    'floe doctor: not confirmed',
    told(sure),
  );

  await Promise.all(members.map((member) => member.start()));
  check(true, 'every broker starts again');
  const second = topics.map((topic) => new Ledger(topic, 1_000_000));
  const late = clients(second);
  await enough(second, ENOUGH);
  late.stop.abort();
  await late.over;
  const read = topics.map((topic) => new Ledger(topic));
  const reading = new AbortController();
  const readers = read.map((ledger, n) =>
    follow({ port: members[n]!.port, from: HERE }, ledger, reading.signal),
  );
  await until('all that was acknowledged since is read', () =>
    read.every((ledger, n) =>
      second[n]!.numbers.every((number) => ledger.where(number) !== undefined),
    ),
  );
  reading.abort();
  await Promise.all(readers);
  for (const [n, ledger] of read.entries()) {
    const [before, after] = [first[n]!, second[n]!];
    const lost = before.numbers.filter((number) => ledger.where(number) === undefined);
    const moved = [before, after].flatMap((acked) =>
      acked.numbers.filter(
        (number) => ![undefined, acked.said(number)].includes(ledger.where(number)),
      ),
    );
    check(
      lost.every((number) => number >= kept[n]!),
      `${ledger.topic}: what was there before that time is there`,
      `lost ${lost}, kept ${kept[n]}`,
    );
    check(lost.length > 0, `${ledger.topic}: what came later is gone, ${lost.length} records`);
    check(moved.length === 0, `${ledger.topic}: each where it was said to be`, `${moved}`);
    check(ledger.faults.length === 0, `${ledger.topic}: each once`, ledger.faults.join('\n'));
  }
  const confirmed = await floe(['doctor', '--confirm', ...stores]);
  check(confirmed.code === 0, 'floe doctor --confirm', told(confirmed));
} finally {
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
checks.end();

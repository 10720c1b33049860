// Bad things that happen to a cluster, each undone before it resolves; and pairs of them at once. Chance comes from the
// caller's seed; when they really strike depends on the machine.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Prng } from '../../src/base/prng.ts';
import { LEVELS } from '../../src/cluster/levels.ts';
import { bucketHarms } from './bucket-harms.ts';
import type { Member, TestCluster } from './cluster.ts';
import { databaseHarms } from './database-harms.ts';
import type { Program } from './earlier.ts';
import { anyMember, type Harm, someTime } from './harm.ts';
import { operatorHarms, type StoppedTopic } from './operator-harms.ts';
import type { Relay } from './relay.ts';

/** Two of the others, together. */
export const PAIR = 'two-at-once';

/** A zombie: longer than any lease, and a minute. */
const LONG_PAUSE_MS = 20_000;
const ZOMBIE_MS = 60_000;
/** It may be a zombie meanwhile. */
const STOP_LIMIT_MS = 120_000;
/** A clock that nobody looks after; S3 refuses requests that are a quarter of an hour off. */
const MAX_CLOCK_SHIFT_MINUTES = 60;

export interface HarmOptions {
  /** For a journal of what happened when. */
  readonly folder: string;
  /** Brokers change between it and this program. */
  readonly earlier?: Program | undefined;
  /** Stopped for a while at times. */
  readonly stopped?: StoppedTopic;
}

/** By name. */
export function harmsOf(
  cluster: TestCluster,
  { folder, earlier, stopped }: HarmOptions,
): Record<string, Harm> {
  const note = (text: string) =>
    appendFileSync(join(folder, 'harms.txt'), `${new Date().toISOString()} ${text}\n`);
  const single = { ...processHarms(cluster), ...networkHarms(cluster) };
  if (earlier !== undefined) single['other-version'] = otherVersion(cluster, earlier);
  Object.assign(single, databaseHarms(cluster), bucketHarms(cluster));
  if (stopped !== undefined) Object.assign(single, operatorHarms(cluster, stopped));
  const noted = Object.entries(single).map(([name, harm]) => {
    const both = async (prng: Prng) => {
      note(`${name} begins`);
      await harm(prng);
      note(`${name} ends`);
    };
    return [name, both] as const;
  });
  return { ...Object.fromEntries(noted), [PAIR]: pairsOf(cluster, noted) };
}

/** Each pair once, in any order, before any comes again. */
function pairsOf(cluster: TestCluster, single: readonly (readonly [string, Harm])[]): Harm {
  const ahead: [Harm, Harm][] = [];
  return async (prng) => {
    if (ahead.length === 0)
      for (const [n, [, first]] of single.entries())
        for (const [, second] of single.slice(n + 1)) ahead.push([first, second]);
    const [pair] = ahead.splice(prng.int(ahead.length), 1);
    const [first, second] = prng.int(2) === 0 ? pair! : pair!.toReversed();
    await Promise.all([
      first!(prng),
      // The second may find nobody to strike: all that is left must stay up.
      sleep(prng.int(1_000)).then(() => (others(cluster) ? second!(prng) : undefined)),
    ]);
  };
}

/** True while a broker may be taken away. */
const others = ({ members }: TestCluster) => members.filter(({ up }) => up).length > 1;

function processHarms(cluster: TestCluster): Record<string, Harm> {
  const paused = async (prng: Prng, ms: number) => {
    const { node } = anyMember(cluster, prng);
    node.signal('SIGSTOP');
    await sleep(ms);
    node.signal('SIGCONT');
  };
  return {
    async kill(prng) {
      const member = anyMember(cluster, prng);
      await member.kill();
      await sleep(prng.int(8_000));
      await member.start();
    },
    async restart(prng) {
      const member = anyMember(cluster, prng);
      await inOrder(member);
      await member.start();
    },
    pause: (prng) => paused(prng, prng.int(3) === 0 ? LONG_PAUSE_MS : 500 + prng.int(7_000)),
    zombie: (prng) => paused(prng, ZOMBIE_MS),
    async 'clock-off'(prng) {
      const member = anyMember(cluster, prng);
      const minutes = 1 + prng.int(MAX_CLOCK_SHIFT_MINUTES);
      await inOrder(member);
      member.clockShiftMs = (prng.int(2) === 0 ? 1 : -1) * minutes * 60_000;
      await member.start();
      await someTime(prng);
      member.clockShiftMs = 0;
      if (member.up) await inOrder(member);
      await member.start();
    },
  };
}

/** An upgrade of one broker, or the way back while that is open: levels that both speak don't rise. */
function otherVersion(cluster: TestCluster, earlier: Program): Harm {
  const mayGoBack = earlier.levels.max === LEVELS.max;
  return async (prng) => {
    const member = anyMember(cluster, prng);
    await inOrder(member);
    member.main = member.main === undefined && mayGoBack ? earlier.main : undefined;
    await member.start();
  };
}

async function inOrder(member: Member): Promise<void> {
  const code = await Promise.race([member.stop(), sleep(STOP_LIMIT_MS, 'late' as const)]);
  if (code === 'late')
    throw new Error(`broker ${member.nodeId} has not ended ${STOP_LIMIT_MS} ms after SIGTERM`);
  if (code !== 0) throw new Error(`SIGTERM ended broker ${member.nodeId} with ${code}`);
}

type Direction = 'both' | 'one-way' | 'slow';

function networkHarms(cluster: TestCluster): Record<string, Harm> {
  const relayed = (relaysOf: (member: Member) => readonly Relay[], direction: Direction): Harm => {
    return async (prng) => {
      const relays = relaysOf(anyMember(cluster, prng));
      const trouble = troubleOf(direction, prng);
      for (const relay of relays) relay.trouble = trouble;
      await someTime(prng);
      for (const relay of relays) relay.trouble = {};
      if (prng.int(2) === 0) for (const relay of relays) relay.reset();
    };
  };
  const database = ({ postgres }: Member) => [postgres];
  const bucket = ({ s3 }: Member) => [s3];
  /** What the other brokers say to this one, and it to them. */
  const peers = ({ hints, http }: Member) => [hints, http];
  return {
    'database-cut': relayed(database, 'both'),
    'database-one-way': relayed(database, 'one-way'),
    'database-slow': relayed(database, 'slow'),
    'bucket-cut': relayed(bucket, 'both'),
    'bucket-one-way': relayed(bucket, 'one-way'),
    'brokers-cut': relayed(peers, 'both'),
    'brokers-one-way': relayed(peers, 'one-way'),
  };
}

function troubleOf(direction: Direction, prng: Prng): Relay['trouble'] {
  if (direction === 'slow') return { toServerMs: 20 + prng.int(500) };
  if (direction === 'both') return { toServerMs: Infinity, toClientMs: Infinity };
  return prng.int(2) === 0 ? { toServerMs: Infinity } : { toClientMs: Infinity };
}

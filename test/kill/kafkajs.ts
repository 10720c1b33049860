// kafkajs beside dying brokers, with its sockets tapped: who is at fault when a record is missing or a job ends early?
// Three brokers over PostgreSQL and an S3 double; one is killed again and again under load.
//   node test/kill/kafkajs.ts acks [--kills 50]     what `send` called sent, what the wire acked, what the log holds
//   node test/kill/kafkajs.ts copies [--kills 20]   consume, transform, produce in transactions: each record once
//   node test/kill/kafkajs.ts reads [--kills 20]    members of a group while leaders move: who gave a record twice
// Ours fails the run: an acked record that the log lacks or has elsewhere, a committed copy that is missing or doubled.
// What the client does by itself is told, not judged (test/compat/FINDINGS.md has the reasons).
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { seededPrng } from '../../src/base/prng.ts';
import { TestCluster } from '../cluster/cluster.ts';
import { acksUnderKills } from './kafkajs-acks.ts';
import { copiesUnderKills } from './kafkajs-copies.ts';
import { readsUnderMoves } from './kafkajs-reads.ts';

const { values: args, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kills: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    /** Of each kind of request to the S3 double, in milliseconds. */
    put: { type: 'string', default: '20' },
  },
});
const works = { acks: acksUnderKills, copies: copiesUnderKills, reads: readsUnderMoves };
const work = works[positionals[0] as keyof typeof works];
if (work === undefined) {
  process.stderr.write('node test/kill/kafkajs.ts acks|copies|reads [--kills N] [--seed N]\n');
  process.exit(2);
}

const prng = seededPrng(Number(args.seed));
const folder = await mkdtemp(join(tmpdir(), 'floe-kafkajs-'));
const cluster = await TestCluster.start({ folder, brokers: 3, putMs: Number(args.put), getMs: 5 });

/** Who reads sees leaders move also when a broker is asked to stop: every other one then is. */
const asks = positionals[0] === 'reads';

/** Ends one broker after the other at random moments, each back before the next. */
async function kills(onKill: (nodeId: number) => void): Promise<void> {
  for (let n = 1; n <= Number(args.kills); n += 1) {
    await sleep(200 + prng.int(3_000));
    const member = cluster.members[prng.int(cluster.members.length)]!;
    onKill(member.nodeId);
    if (asks && n % 2 === 0) await member.stop();
    else await member.kill();
    await sleep(prng.int(4_000));
    await member.start();
  }
}

let faults: readonly string[];
try {
  faults = await work({ brokers: cluster.brokers.split(','), kills, prng });
} finally {
  await cluster.stop();
  await rm(folder, { recursive: true, force: true });
}
for (const fault of faults) process.stdout.write(`FAIL ${fault}\n`);
process.stdout.write(
  `${positionals[0]}: ${args.kills} kills, ${faults.length} faults of the brokers\n`,
);
process.exit(faults.length === 0 ? 0 : 1);

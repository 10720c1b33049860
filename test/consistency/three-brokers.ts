// Three brokers over PostgreSQL with a standby and an S3 double, in two zones, with everything that test/cluster/harms.ts
// can do to them.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { TestCluster } from '../cluster/cluster.ts';
import { earlierProgram } from '../cluster/earlier.ts';
import { harmsOf, PAIR } from '../cluster/harms.ts';
import { REFUSING_TRIGGERS } from '../cluster/triggers.ts';
import { QUICK_UPKEEP, type Target } from './target.ts';
import { PARTITIONS, TOPIC } from './topic.ts';

/** Upgrades in a round: each of the three, there and back. */
const UPGRADES = 6;
/** Pairs of harms in a round. */
const PAIRS = 12;

/** @param revision of the repository that brokers begin with, and go back to at times */
export async function threeBrokers(folder: string, revision?: string): Promise<Target> {
  const earlier = revision === undefined ? undefined : await earlierProgram(revision, folder);
  const cluster = await TestCluster.start({
    folder,
    brokers: 3,
    racks: ['a', 'b'],
    arguments: QUICK_UPKEEP,
    ...(earlier && { main: earlier.main }),
    standby: (url) => assertDoctorRefuses(url, folder),
  });
  await cluster.postgres.pair!.sql(REFUSING_TRIGGERS);
  return {
    brokers: cluster.brokers,
    get http() {
      return cluster.anyNode.addresses.http;
    },
    get stores() {
      return cluster.stores;
    },
    harms: harmsOf(cluster, {
      folder,
      earlier,
      stopped: { topic: TOPIC, partitions: PARTITIONS },
    }),
    weights: { [PAIR]: PAIRS, 'other-version': UPGRADES },
    // Whoever ends by itself has met what it doesn't know how to live with.
    faults: () => cluster.members.flatMap(({ ends }) => ends),
    stop: () => cluster.stop(),
  };
}

/** A failover to a standby that no commit waits for loses acknowledged records. */
function assertDoctorRefuses(metadata: string, folder: string): Promise<void> {
  const main = join(import.meta.dirname, '../../src/cli/main.ts');
  const stores = ['--metadata', metadata, '--storage', pathToFileURL(join(folder, 'store')).href];
  const args = ['--disable-warning=ExperimentalWarning', main, 'doctor', ...stores];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, (error, stdout, stderr) => {
      const told = /wrong +database +synchronous_standby_names/.test(stdout);
      if (error?.code === 1 && told) resolve();
      else reject(new Error(`floe doctor let an asynchronous standby pass: ${stdout}${stderr}`));
    });
  });
}

// Three brokers over PostgreSQL with a standby and an S3 double, in two zones, with everything that test/cluster/harms.ts
// can do to them.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { TestCluster } from '../cluster/cluster.ts';
import { harmsOf, PAIR } from '../cluster/harms.ts';
import { REFUSING_TRIGGERS } from '../cluster/triggers.ts';
import { QUICK_UPKEEP, type Target } from './target.ts';

/** Pairs of harms in a round. */
const PAIRS = 12;

export async function threeBrokers(folder: string): Promise<Target> {
  const cluster = await TestCluster.start({
    folder,
    brokers: 3,
    racks: ['a', 'b'],
    arguments: QUICK_UPKEEP,
    standby: (url) => assertDoctorRefuses(url, folder),
  });
  await cluster.postgres.pair!.sql(REFUSING_TRIGGERS);
  return {
    brokers: cluster.brokers,
    get http() {
      return cluster.anyNode.addresses.http;
    },
    harms: harmsOf(cluster, folder),
    weights: { [PAIR]: PAIRS },
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

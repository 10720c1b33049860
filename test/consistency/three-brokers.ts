// Three brokers over PostgreSQL and an S3 double, in two zones, with everything that test/cluster/harms.ts can do to them.
import { TestCluster } from '../cluster/cluster.ts';
import { harmsOf } from '../cluster/harms.ts';
import { QUICK_UPKEEP, type Target } from './target.ts';

export async function threeBrokers(folder: string): Promise<Target> {
  const cluster = await TestCluster.start({
    folder,
    brokers: 3,
    racks: ['a', 'b'],
    arguments: QUICK_UPKEEP,
  });
  return {
    brokers: cluster.brokers,
    get http() {
      return cluster.anyNode.addresses.http;
    },
    harms: harmsOf(cluster),
    stop: () => cluster.stop(),
  };
}

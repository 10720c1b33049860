// The cluster as other folders see it.
export type { Cluster, ClusterNode, Leases, WantedLease } from './cluster.ts';
export { LEVELS } from './levels.ts';
export { chooseNode } from './rendezvous.ts';
export { soloCluster, soloLeases } from './solo.ts';

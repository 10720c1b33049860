// The cluster as other folders see it.
export { ClockKeeper } from './clock-keeper.ts';
export {
  type Cluster,
  type ClusterNode,
  type Leases,
  OWN_COMPACTION,
  type WantedLease,
} from './cluster.ts';
export { Copies, type CopiesOptions } from './copies.ts';
export { type HintListener, Hints, type HintsOptions } from './hints/index.ts';
export { LeaseKeeper } from './lease-keeper.ts';
export { LEVELS } from './levels.ts';
export { ClusterMember, type NodeAddresses } from './node.ts';
export { chooseNode } from './rendezvous.ts';
export { type ClusterSettings, clusterSettings } from './settings.ts';
export { soloCluster, soloLeases } from './solo.ts';

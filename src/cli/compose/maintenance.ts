// Background work of the log. A node alone does all of it. In a cluster retention, collection and compaction by key are one
// node's at a time, by the lease `maintenance/log`; compaction is every node's with the role, side by side, each by a lease
// named after itself, under which it claims what it rewrites.
import type { TopicConfigs } from '../../broker/index.ts';
import { OWN_COMPACTION } from '../../cluster/index.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import {
  type Maintenance,
  type MaintenancePart,
  maintainLog,
} from '../../storage/log/maintenance.ts';
import type { OpenedLog } from '../../storage/log/open-log.ts';
import type { ObjectStore } from '../../storage/objects/index.ts';
import type { TableTopics } from '../../table-topic/index.ts';
import { compactedPartitions, retentionPin, retentionPolicy } from '../retention.ts';
import type { Membership } from './membership.ts';
import type { Node } from './node.ts';

export interface Maintained {
  readonly opened: OpenedLog;
  readonly store: ObjectStore;
  readonly tables: TableTopics;
  readonly configs: TopicConfigs;
  readonly place: Membership;
}

/** Retention, collection, compaction of the log. */
export function maintain(node: Node, { opened, store, tables, configs, place }: Maintained): void {
  const begin = (how: { readonly lease?: LeaseToken; readonly part?: MaintenancePart }) =>
    maintainLog(opened, {
      ...node,
      store,
      policy: retentionPolicy(opened.directory, configs),
      compacted: compactedPartitions(opened.directory, configs),
      maxDecompressedBytes: node.settings['batch.decompressed.max.bytes'],
      pin: retentionPin(tables, opened),
      ...how,
    });
  const alone = place.follower === undefined;
  want(node, place, {
    name: 'maintenance/log',
    // Alone, nobody else could maintain this log.
    begin: (lease) => begin(alone ? {} : { lease, part: 'rest' }),
  });
  if (alone) return;
  want(node, place, {
    name: `${OWN_COMPACTION}${place.cluster.self.nodeId}`,
    own: true,
    begin: (lease) => begin({ lease, part: 'compaction' }),
  });
}

interface Work {
  readonly name: string;
  readonly own?: boolean;
  readonly begin: (lease: LeaseToken) => Maintenance;
}

function want({ lifecycle }: Node, { leases }: Membership, { begin, ...lease }: Work): void {
  let maintenance: Maintenance | undefined;
  const stop = leases.want({
    ...lease,
    role: 'maintenance',
    gained(token) {
      maintenance = begin(token);
    },
    async lost() {
      await maintenance?.stop();
      maintenance = undefined;
    },
  });
  lifecycle.add(lease.name, { stop });
}

// Retention, collection and compaction of the log: on one node at a time, by the lease `maintenance/log`.
import type { TopicConfigs } from '../../broker/index.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import { type Maintenance, maintainLog } from '../../storage/log/maintenance.ts';
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
  let maintenance: Maintenance | undefined;
  const begin = (lease: LeaseToken) =>
    maintainLog(opened, {
      ...node,
      store,
      policy: retentionPolicy(opened.directory, configs),
      compacted: compactedPartitions(opened.directory, configs),
      maxDecompressedBytes: node.settings['batch.decompressed.max.bytes'],
      pin: retentionPin(tables, opened),
      // Alone, nobody else could maintain this log.
      ...(place.follower === undefined ? {} : { lease }),
    });
  const stop = place.leases.want({
    name: 'maintenance/log',
    role: 'maintenance',
    gained(token) {
      maintenance = begin(token);
    },
    async lost() {
      await maintenance?.stop();
      maintenance = undefined;
    },
  });
  node.lifecycle.add('maintenance', { stop });
}

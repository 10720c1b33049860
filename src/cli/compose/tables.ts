// Table topics: alone, or spread over the nodes of a cluster.
import { join } from 'node:path';
import { objectSettings } from '../../storage/objects/index.ts';
import { startTableTopics, type TableTopics } from '../../table-topic/index.ts';
import type { Membership } from './membership.ts';
import type { Node, Parts } from './node.ts';

export function startTables(node: Node, parts: Parts, place: Membership): TableTopics {
  const { opened, chosen, schemas } = parts;
  const names = Object.keys(objectSettings) as (keyof typeof objectSettings)[];
  const storeSettings = Object.fromEntries(names.map((name) => [name, node.settings[name]]));
  return startTableTopics({
    ...node,
    log: opened.log,
    directory: opened.directory,
    metadata: opened.metadata,
    mayDelete: async () => (await opened.metadata.cluster.incarnation()).confirmed,
    catalog: chosen.catalog,
    schemas,
    warehouse: chosen.warehouse,
    ...(place.follower === undefined
      ? {}
      : { shared: { ...place, words: opened.metadata.tableLanes } }),
    threads: {
      storeUri: chosen.storeUri,
      storeSettings,
      keyFolder: join(node.options.dataDir, 'table-keys'),
    },
  });
}

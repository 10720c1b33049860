// Table topics: alone, or spread over the nodes of a cluster.
import { join } from 'node:path';
import { FloeError } from '../../base/error.ts';
import type { Broker } from '../../broker/index.ts';
import { objectSettings } from '../../storage/objects/index.ts';
import { startTableTopics, type TableTopics } from '../../table-topic/index.ts';
import type { Membership } from './membership.ts';
import type { Node, Parts } from './node.ts';

/** `broker`: undefined until it has started. */
export function startTables(
  node: Node,
  parts: Parts,
  { place, broker }: { readonly place: Membership; readonly broker: () => Broker | undefined },
): TableTopics {
  const { opened, chosen, schemas } = parts;
  const names = Object.keys(objectSettings) as (keyof typeof objectSettings)[];
  const storeSettings = Object.fromEntries(names.map((name) => [name, node.settings[name]]));
  return startTableTopics({
    ...node,
    log: opened.log,
    directory: opened.directory,
    metadata: opened.metadata,
    // Dead letters obey what an operator has stopped, as clients do: not before the broker knows it.
    writeStop(topic, partition) {
      const configs = broker()?.topicConfigs;
      if (configs === undefined)
        throw new FloeError('unavailable', 'dead letters wait until the broker has started');
      return configs.writeStop(topic, partition)?.errorMessage;
    },
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

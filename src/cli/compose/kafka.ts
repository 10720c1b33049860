// Kafka: coordinators of groups and transactions, handlers, listeners. A node that is neither front nor coordinator has no
// listener (clients are sent to coordinators, too); the broker behind it answers what other parts ask it.
import { FloeError } from '../../base/error.ts';
import type { Settings } from '../../base/settings.ts';
import { GroupCoordinator, groupHandlers } from '../../broker/groups/index.ts';
import { sendClientsOn } from '../../broker/growth.ts';
import {
  type Broker,
  ResourceConfigs,
  type ShownSetting,
  startBroker,
} from '../../broker/index.ts';
import { TransactionCoordinator, transactionHandlers } from '../../broker/transactions/index.ts';
import { Copies, type NodeAddresses } from '../../cluster/index.ts';
import type { NodeRole } from '../../metadata/nodes.ts';
import type { OpenedLog } from '../../storage/log/open-log.ts';
import { formatAddress } from '../address.ts';
import { portError } from '../http.ts';
import type { NodeSecurity } from '../security.ts';
import { settingsByArea } from '../settings.ts';
import { tableTopicConfigs } from '../table-configs.ts';
import type { Membership } from './membership.ts';
import type { Node, Parts, ServerSettings } from './node.ts';

export async function startKafka(
  node: Node,
  { opened, store, schemas, chosen }: Parts,
  { secured, place }: { readonly secured: NodeSecurity; readonly place: Membership },
): Promise<Broker> {
  const { options, settings, lifecycle } = node;
  const { log, directory, metadata, clusterId } = opened;
  const resourceConfigs = await ResourceConfigs.load(metadata.resourceConfigs);
  const { cluster, leases } = place;
  const inCluster = { cluster: { cluster, leases } };
  const groups = lifecycle.add(
    'groups',
    await GroupCoordinator.load({
      ...node,
      directory,
      leases,
      metadata: metadata.groups,
      transactions: metadata.transactions,
      groupConfigs: (groupId) => resourceConfigs.of('group', groupId),
    }),
  );
  const transactions = lifecycle.add(
    'transactions',
    await TransactionCoordinator.load({
      ...node,
      groups,
      leases,
      metadata: metadata.transactions,
    }),
  );
  try {
    return lifecycle.add(
      'broker',
      await startBroker({
        ...node,
        listeners: listens(settings['node.roles']) ? secured.listeners : [],
        security: secured.security,
        log,
        directory,
        metadata,
        clusterId,
        nodeId: cluster.self.nodeId,
        ...inCluster,
        logControl: node.logger.control,
        resourceConfigs,
        logDirectory: store.uri,
        topicConfigExtensions: [tableTopicConfigs({ directory, schemas, catalog: chosen.catalog })],
        otherSettings: otherSettings(settings),
        transactions,
        handlers: () => [...groupHandlers(groups), ...transactionHandlers(transactions)],
      }),
    );
  } catch (caught) {
    if (settings.listeners.length > 0) throw caught;
    throw portError('--kafka', options.kafka, caught);
  }
}

const LISTENING: readonly NodeRole[] = ['front', 'coordinator'];

const listens = (roles: readonly NodeRole[]) => LISTENING.some((role) => roles.includes(role));

/** Where clients reach each listener. */
export function advertised({ addresses, services }: Broker): NodeAddresses['listeners'] {
  return Object.fromEntries(
    addresses.map(({ name }) => {
      const { host, port } = services.cluster.endpoint(name);
      return [name, { host, port }];
    }),
  );
}

/** `host:port` of the first listener, further ones with their names; `none` without any. */
export function kafkaAddresses({ addresses }: Broker): string {
  const [first, ...others] = addresses.map((bound) => ({ ...bound, text: formatAddress(bound) }));
  return [first?.text ?? 'none', ...others.map(({ name, text }) => `${name}://${text}`)].join(',');
}

/** What DescribeConfigs shows of the parts beside the broker. */
function otherSettings(settings: ServerSettings): ShownSetting[] {
  const { Broker: _, ...others } = settingsByArea;
  return Object.values(others).flatMap((area: Settings) =>
    Object.entries(area).map(([name, setting]) => ({
      name,
      setting,
      value: setting.format(settings[name as keyof ServerSettings]),
    })),
  );
}

/** Heartbeats after which every broker knows of a new one. */
const SETTLE_HEARTBEATS = 2;

/** What other nodes change, this one reads again; brokers that come get their share of its clients. */
export function followChanges(node: Node, { opened, broker, secured, place }: Followed): void {
  const { follower } = place;
  if (follower === undefined) return;
  const { directory, metadata } = opened;
  const { config, resourceConfigs, quotas } = broker.services;
  const copies = node.lifecycle.add(
    'copies',
    new Copies({
      ...node,
      metadata: metadata.versions,
      refresh: {
        topics: () => directory.refresh(),
        'broker-configs': () => config.refresh(),
        'resource-configs': () => resourceConfigs.refresh(),
        security: () => secured.security.refresh(),
        quotas: () => quotas.refresh(),
        nodes: () => place.refresh(),
      },
    }),
  );
  follower.onVersions((versions) => copies.seen(versions));
  // A topic, a setting, a right that was changed elsewhere counts here within a moment, not with the next poll; and what
  // somebody has deleted there is served here no longer.
  place.onNews(() => {
    void copies.look();
    opened.log
      .caughtUp()
      .catch((caught) =>
        node.logger.debug({ error: FloeError.from(caught).message }, 'could not look at the log'),
      );
  });
  directory.followOthers(() => copies.catchUp('topics'));
  const settleMs = SETTLE_HEARTBEATS * node.settings['cluster.heartbeat.ms'];
  const end = sendClientsOn(broker.services, { cluster: place.cluster, settleMs });
  node.lifecycle.add('growth', { stop: async () => end() });
}

interface Followed {
  readonly opened: OpenedLog;
  readonly broker: Broker;
  readonly secured: NodeSecurity;
  readonly place: Membership;
}

// Every setting that `floe serve` takes, put together from the folders' own definitions.
import { int, list, oneOf, type Settings } from '../base/settings.ts';
import { securitySettings } from '../broker/auth/index.ts';
import { groupSettings } from '../broker/groups/index.ts';
import { brokerSettings } from '../broker/index.ts';
import { transactionSettings } from '../broker/transactions/index.ts';
import { catalogSettings } from '../catalog/index.ts';
import { clusterSettings } from '../cluster/index.ts';
import { nodeRoles } from '../metadata/nodes.ts';
import { postgresSettings } from '../metadata/postgres/settings.ts';
import { protocolSettings } from '../protocol/index.ts';
import { querySettings } from '../queries/settings.ts';
import { externalRegistrySettings } from '../schema-registry/external/index.ts';
import { registrySettings } from '../schema-registry/index.ts';
import { maintenanceSettings } from '../storage/log/maintenance-settings.ts';
import { readSettings } from '../storage/log/read-settings.ts';
import { logSettings } from '../storage/log/settings.ts';
import { objectSettings } from '../storage/objects/index.ts';
import { tableSettings } from '../table-topic/index.ts';

const nodeSettings = {
  'node.id': int({
    default: 1,
    min: 0,
    doc: 'Id of this broker, as clients see it. In a cluster, unless given, the lowest that no living node has.',
    aliases: ['broker.id'],
  }),
  'node.roles': list({
    default: nodeRoles,
    values: nodeRoles,
    doc: 'What this node does: `front` takes and serves records, `coordinator` looks after groups and transactions, `tables` writes tables, `maintenance` looks after the log and the files of tables, `query` answers SQL, `http` serves the schema registry and the Iceberg catalog. Each role needs a node in its cluster that has it.',
  }),
  'log.level': oneOf(['debug', 'info', 'warn', 'error', 'silent'], {
    default: 'warn',
    doc: 'What is logged, as JSON lines on stderr. `info` adds one line for each thing that starts or changes.',
  }),
} as const satisfies Settings;

/** By area, in the order of the settings page. */
export const settingsByArea = {
  Node: nodeSettings,
  Cluster: clusterSettings,
  'Metadata on PostgreSQL': postgresSettings,
  Broker: { ...protocolSettings, ...brokerSettings },
  Security: securitySettings,
  'Consumer groups': groupSettings,
  Transactions: transactionSettings,
  Log: { ...logSettings, ...readSettings, ...maintenanceSettings },
  'Object storage': objectSettings,
  'Schema registry': { ...registrySettings, ...externalRegistrySettings },
  Catalog: catalogSettings,
  'Table topics': tableSettings,
  SQL: querySettings,
} as const satisfies Record<string, Settings>;

export const serverSettings = {
  ...settingsByArea.Node,
  ...settingsByArea.Cluster,
  ...settingsByArea['Metadata on PostgreSQL'],
  ...settingsByArea.Broker,
  ...settingsByArea.Security,
  ...settingsByArea['Consumer groups'],
  ...settingsByArea.Transactions,
  ...settingsByArea.Log,
  ...settingsByArea['Object storage'],
  ...settingsByArea['Schema registry'],
  ...settingsByArea.Catalog,
  ...settingsByArea['Table topics'],
  ...settingsByArea.SQL,
} as const satisfies Settings;

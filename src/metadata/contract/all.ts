// All contract suites but the log's (log.ts, transactions), for stores whose tests live in one file.
import { catalogContract } from './catalog.ts';
import { claimsContract } from './claims.ts';
import { clusterContract } from './cluster.ts';
import { groupsContract } from './groups.ts';
import { leasesContract } from './leases.ts';
import { nodesContract } from './nodes.ts';
import { quotasContract } from './quotas.ts';
import { registryContract } from './registry.ts';
import { securityContract } from './security.ts';
import type { OpenStore } from './store.ts';
import { tableLanesContract } from './table-lanes.ts';
import { tablesContract } from './tables.ts';
import { versionsContract } from './versions.ts';

/** Runs them on stores that `open` makes. */
export function domainContracts(name: string, open: OpenStore): void {
  for (const contract of [
    clusterContract,
    versionsContract,
    nodesContract,
    leasesContract,
    claimsContract,
    groupsContract,
    securityContract,
    registryContract,
    tablesContract,
    tableLanesContract,
    catalogContract,
    quotasContract,
  ])
    contract(name, open);
}

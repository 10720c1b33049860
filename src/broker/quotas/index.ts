// Quotas of clients and limits of connections: the public face of the folder.
export { type ClientLimits, ClientQuotas } from './client-quotas.ts';
export { ConnectionLimits, plainAddress, type RefusalReason } from './connection-limits.ts';

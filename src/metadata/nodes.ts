// Nodes of a cluster: who is alive, where clients and other nodes reach it, what it does. A node lives while its
// heartbeats arrive, by the store's clock. Not for: what a node may do alone (leases.ts).
import { FloeError } from '../base/error.ts';

/** Where a listener of a node is reached. */
export interface NodeEndpoint {
  readonly host: string;
  readonly port: number;
}

/** What parts of the program a node runs. */
export const nodeRoles = [
  'front',
  'coordinator',
  'tables',
  'maintenance',
  'query',
  'http',
] as const;

export type NodeRole = (typeof nodeRoles)[number];

export interface NodeDescription {
  /** Zone of the node, as `client.rack`; null when none was given. */
  readonly rack: string | null;
  readonly roles: readonly NodeRole[];
  /** Advertised addresses of the Kafka listeners by name. */
  readonly listeners: Readonly<Record<string, NodeEndpoint>>;
  /** Where other nodes send hints; null: nowhere. */
  readonly hints: NodeEndpoint | null;
  /** Base URL of the operator's HTTP face (`http://host:port`), which every node has; null until the node is ready. */
  readonly http: string | null;
  /** Of the program, as in package.json. */
  readonly version: string;
  /** Versions of what nodes say to each other and write for each other: the lowest and highest that it speaks. */
  readonly levels: { readonly min: number; readonly max: number };
}

export interface NodeRegistration extends NodeDescription {
  /** Undefined: the store assigns the lowest id that no living node has. */
  readonly nodeId: number | undefined;
  /** Of this life of the node; a UUID. */
  readonly session: string;
}

export interface NodeRecord extends NodeDescription {
  readonly nodeId: number;
  readonly session: string;
  /** Takes no new work and is about to go. */
  readonly draining: boolean;
  /** Since the last heartbeat, by the store's clock. */
  readonly silentMs: number;
  readonly startedMs: number;
}

export interface NodesMetadata {
  /**
   * @returns the node's id. @throws FloeError `conflict` when a living node (heard of within `aliveMs`) has the id
   * under another session.
   */
  register(registration: NodeRegistration, aliveMs: number): Promise<number>;
  /** @throws FloeError `conflict`: another session has the id, or the record is gone: this life is over. */
  heartbeat(nodeId: number, session: string, draining: boolean): Promise<void>;
  /** Ends the node's life at once. Nothing when the session isn't the present one. */
  leave(nodeId: number, session: string): Promise<void>;
  /** Every node not yet forgotten, by id, the silent ones too. */
  list(): Promise<readonly NodeRecord[]>;
  /** Forgets nodes silent for longer. */
  forget(silentMs: number): Promise<void>;
}

/** @returns the error of a registration under an id that is in use. */
export function nodeIdTaken(nodeId: number): FloeError {
  return new FloeError(
    'conflict',
    `a living node has the id ${nodeId}: give each its own --node-id, or none to be given one`,
    { details: { nodeId } },
  );
}

/** @returns the error of a heartbeat that nobody counts any more. */
export function nodeLifeOver(nodeId: number): FloeError {
  return new FloeError(
    'conflict',
    `this life of node ${nodeId} is over: it is forgotten or replaced`,
    {
      details: { nodeId },
    },
  );
}

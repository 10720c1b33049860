// Nodes for tests: all roles, nowhere in particular.
import { type NodeDescription, nodeRoles } from '../../metadata/nodes.ts';
import type { ClusterNode } from '../cluster.ts';
import { LEVELS } from '../levels.ts';

/** What a node says of itself, but for `changes`. */
export function nodeDescription(changes: Partial<NodeDescription> = {}): NodeDescription {
  return {
    rack: null,
    roles: nodeRoles,
    listeners: { PLAINTEXT: { host: '127.0.0.1', port: 9092 } },
    hints: null,
    http: null,
    version: '0.0.0',
    levels: LEVELS,
    ...changes,
  };
}

/** A living node. */
export function clusterNode(nodeId: number, changes: Partial<ClusterNode> = {}): ClusterNode {
  return {
    ...nodeDescription(),
    nodeId,
    session: `session-${nodeId}`,
    draining: false,
    ...changes,
  };
}

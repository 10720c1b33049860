// The living nodes as last looked at, and who is chosen among them. Changed only by its owner (node.ts); listeners hear
// of what matters to them: nodes that came, went, drain, or say something else of themselves.
import type { NodeRecord, NodeRole } from '../metadata/nodes.ts';
import type { Cluster, ClusterNode } from './cluster.ts';
import { commonLevel } from './levels.ts';
import { chooseNode } from './rendezvous.ts';

export class ClusterView implements Cluster {
  #self: ClusterNode;
  #nodes: readonly ClusterNode[];
  #byRole = new Map<NodeRole, readonly ClusterNode[]>();
  #text: string;
  #level: number;
  readonly #listeners = new Set<() => void>();

  constructor(self: ClusterNode) {
    this.#self = self;
    this.#nodes = [self];
    this.#text = JSON.stringify(this.#nodes);
    this.#level = self.levels.max;
  }

  get self(): ClusterNode {
    return this.#self;
  }

  nodes(): readonly ClusterNode[] {
    return this.#nodes;
  }

  chosen(key: string, role: NodeRole, rack: string | null = null): ClusterNode | undefined {
    return chooseNode(key, this.#ofRole(role), rack);
  }

  level(): number {
    return this.#level;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What this node says of itself now. */
  describe(self: ClusterNode): void {
    this.#self = self;
    this.#keep([...this.#nodes.filter(({ nodeId }) => nodeId !== self.nodeId), self]);
  }

  /** The others as the store knows them; those silent for as long as `aliveMs` tells don't live. */
  update(records: readonly NodeRecord[], aliveMs: (record: NodeRecord) => number): void {
    const others = records.filter(
      (record) => record.nodeId !== this.#self.nodeId && record.silentMs < aliveMs(record),
    );
    this.#keep([...others.map(asNode), this.#self]);
  }

  /** The level agreed upon at the start. */
  begin(level: number): void {
    this.#level = level;
  }

  #ofRole(role: NodeRole): readonly ClusterNode[] {
    let nodes = this.#byRole.get(role);
    if (nodes === undefined) {
      nodes = this.#nodes.filter(({ roles }) => roles.includes(role));
      this.#byRole.set(role, nodes);
    }
    return nodes;
  }

  #keep(nodes: readonly ClusterNode[]): void {
    const sorted = nodes.toSorted((a, b) => a.nodeId - b.nodeId);
    const text = JSON.stringify(sorted);
    if (text === this.#text) return;
    this.#nodes = sorted;
    this.#text = text;
    this.#byRole = new Map();
    this.#level = Math.max(this.#level, commonLevel(sorted) ?? 0);
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Without what changes at every look. */
function asNode({ silentMs: _, startedMs: __, ...node }: NodeRecord): ClusterNode {
  return node;
}

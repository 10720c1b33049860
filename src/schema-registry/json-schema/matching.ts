// The largest matching between two sides of a graph, by augmenting paths (Kuhn). For the members of a combined schema:
// each must find a partner of its own.

/** `edges[i]`: the members of the other side that member i may be paired with. Returns how many pairs are possible. */
export function matching(edges: readonly (readonly number[])[]): number {
  const partners = new Map<number, number>();
  const augment = (from: number, tried: Set<number>): boolean =>
    edges[from]!.some((to) => {
      if (tried.has(to)) return false;
      tried.add(to);
      const rival = partners.get(to);
      if (rival !== undefined && !augment(rival, tried)) return false;
      partners.set(to, from);
      return true;
    });
  return edges.filter((_edge, from) => augment(from, new Set())).length;
}

// Names that occur more than once in a request: most admin APIs refuse those with INVALID_REQUEST.

export function repeated(names: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) twice.add(name);
    seen.add(name);
  }
  return twice;
}

// Beginnings of file names, asked by whole names: as many as a table's intents, asked for each of its files. A name is cut
// to each length that a beginning has, of which there are few, so that a question costs the same however many there are.
// Pure.

export class PrefixSet {
  readonly #byLength = new Map<number, Set<string>>();

  constructor(prefixes: Iterable<string>) {
    for (const prefix of prefixes) {
      const same = this.#byLength.get(prefix.length);
      if (same === undefined) this.#byLength.set(prefix.length, new Set([prefix]));
      else same.add(prefix);
    }
  }

  /** The beginnings of `name`. */
  *of(name: string): Generator<string> {
    for (const [length, prefixes] of this.#byLength) {
      const start = name.slice(0, length);
      if (prefixes.has(start)) yield start;
    }
  }

  /** Whether `name` has one. */
  covers(name: string): boolean {
    return !this.of(name).next().done;
  }
}

// What a check found wrong: all of it counted, the first ones kept, so that a store that is gone whole needs no more memory
// than one lost object.

/** Of each kind of fault so many are told one by one. */
const MOST_LISTED = 10;

export class Found {
  #count = 0;
  readonly #first: string[] = [];

  add(text: string): void {
    this.#count += 1;
    if (this.#first.length < MOST_LISTED) this.#first.push(text);
  }

  get count(): number {
    return this.#count;
  }

  /** In the order of texts, since checks run side by side. */
  get first(): readonly string[] {
    return this.#first.toSorted();
  }

  /** How many aren't among {@link first}. */
  get more(): number {
    return this.#count - this.#first.length;
  }
}

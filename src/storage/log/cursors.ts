// Where readers left off: the next offset of recent reads and the place of its batch, so that going on costs no
// walk through an entry and read-ahead knows who reads in order. A few per partition, bounded in all; losing one
// costs a walk, nothing else.

/** The next read of somebody who reads in order. */
export interface Cursor {
  readonly offset: number;
  readonly objectId: number;
  /** First byte of the entry that holds the offset; −1 when the next entry isn't known. */
  readonly entryPosition: number;
  /** First byte of the batch that begins at `offset`, within the object. */
  readonly position: number;
}

const PER_PARTITION = 4;

export class Cursors {
  readonly #maxPartitions: number;
  readonly #cursors = new Map<number, Cursor[]>();

  constructor(maxPartitions: number) {
    this.#maxPartitions = maxPartitions;
  }

  find(partitionId: number, offset: number): Cursor | undefined {
    const cursors = this.#cursors.get(partitionId);
    if (cursors === undefined) return undefined;
    for (const cursor of cursors) if (cursor.offset === offset) return cursor;
    return undefined;
  }

  /** `before`: the cursor that this read went on from; it moves. */
  remember(partitionId: number, cursor: Cursor, before: Cursor | undefined): void {
    const cursors = this.#cursors.get(partitionId);
    if (cursors === undefined) {
      if (this.#cursors.size >= this.#maxPartitions)
        this.#cursors.delete(this.#cursors.keys().next().value!);
      this.#cursors.set(partitionId, [cursor]);
      return;
    }
    const old = before === undefined ? -1 : cursors.indexOf(before);
    if (old !== -1) cursors[old] = cursor;
    else if (cursors.push(cursor) > PER_PARTITION) cursors.shift();
  }

  removePartition(partitionId: number): void {
    this.#cursors.delete(partitionId);
  }
}

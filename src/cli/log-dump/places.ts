// Where in the logs the bytes of an object stand: entries of its indexes by position, and the markers among them, which have
// no bytes. Bytes are stored raw, so nothing else knows their offsets. Pure.
import { EntryKind, isMarker, type Marker, type PackedIndex } from '../../metadata/packed-index.ts';

export interface Place {
  readonly partitionId: number;
  readonly position: number;
  /** Position after its last byte. */
  readonly end: number;
  readonly baseOffset: number;
  /** Batches say their own offsets. */
  readonly placed: boolean;
}

export interface PlacedMarker extends Marker {
  readonly partitionId: number;
  readonly offset: number;
}

export class Places {
  readonly #entries: Place[] = [];
  readonly #blocks = new Set<number>();
  readonly markers: PlacedMarker[] = [];
  #sorted = true;

  add(index: PackedIndex): void {
    for (let n = 0; n < index.count; n += 1) {
      const partitionId = index.partitionIds[n]!;
      const baseOffset = index.baseOffsets[n]!;
      if (isMarker(index.kinds[n]!)) {
        this.markers.push({ partitionId, offset: baseOffset, ...index.marker(n) });
        continue;
      }
      const position = index.positions[n]!;
      const placed = index.kinds[n] === EntryKind.PLACED;
      const end = position + index.lengths[n]!;
      this.#entries.push({ partitionId, position, end, baseOffset, placed });
      this.#blocks.add(index.blockPositions[n]!);
    }
    this.#sorted = false;
  }

  /** Entries with bytes. */
  get count(): number {
    return this.#entries.length;
  }

  /** Position after the last byte that an entry has. */
  get end(): number {
    return this.#entries.reduce((last, { end }) => Math.max(last, end), 0);
  }

  /** Ascending. */
  get blocks(): readonly number[] {
    return [...this.#blocks].sort((a, b) => a - b);
  }

  /** The entry that a byte belongs to; undefined: a batch that was refused or there already. */
  at(position: number): Place | undefined {
    if (!this.#sorted) this.#entries.sort((a, b) => a.position - b.position);
    this.#sorted = true;
    let [low, high] = [0, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#entries[middle]!.end > position) high = middle;
      else low = middle + 1;
    }
    const found = this.#entries[low];
    return found !== undefined && found.position <= position ? found : undefined;
  }
}

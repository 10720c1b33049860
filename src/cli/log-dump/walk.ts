// Walks the blocks of an object from its first byte on, as its own bytes tell them: headers say how far they reach. Where no
// header is, the next is looked for where one may be: at positions that an index names, and at pages, where flushes begin
// in local files. Not for: batches and their offsets (dump.ts).
import { PAGE_BYTES } from '../../storage/log/disk.ts';
import {
  BLOCK_HEADER_BYTES,
  type BlockHeader,
  readBlockHeader,
} from '../../storage/log/wal-format.ts';
import type { Window } from './object-bytes.ts';

export type Piece =
  | {
      readonly kind: 'block';
      readonly header: BlockHeader;
      readonly payload: Uint8Array;
      /** Bytes of the payload that the object ends before. */
      readonly lacking: number;
    }
  /** No block, though more blocks follow. */
  | { readonly kind: 'gap'; readonly position: number; readonly bytes: number }
  /** No block follows. */
  | {
      readonly kind: 'rest';
      readonly position: number;
      readonly bytes: number;
      readonly content: Rest;
    };

/** `zeros`: room; `earlier`: blocks of the file's use before; `other`: neither. */
export type Rest =
  | { readonly kind: 'zeros' | 'other' }
  | { readonly kind: 'earlier'; readonly generation: number };

export interface WalkOptions {
  /** Where the footer begins, or the object's size. */
  readonly end: number;
  /** What the blocks' headers should say; undefined: what the first says. */
  readonly generation: number | undefined;
  /** Positions of blocks that an index names, ascending. */
  readonly known: readonly number[];
}

const SCAN_BYTES = 1024 * 1024;

export async function* walk(window: Window, options: WalkOptions): AsyncGenerator<Piece> {
  const { end } = options;
  const whose = new Whose(options.generation);
  let position = 0;
  while (position < end) {
    const header = await headerAt(window, position);
    if (header !== undefined && whose.takes(header)) {
      const from = position + BLOCK_HEADER_BYTES;
      const payload = await window.at(from, header.payloadLength);
      yield { kind: 'block', header, payload, lacking: header.payloadLength - payload.length };
      position = from + header.payloadLength;
      continue;
    }
    const next = await nextBlock(window, { ...options, from: position, whose });
    const zeros = await isZero(window, position, next ?? end);
    if (next === undefined) {
      yield { kind: 'rest', position, bytes: end - position, content: whose.rest(zeros) };
      return;
    }
    // Up to the next page, where the next flush begins.
    if (!zeros || next - position >= PAGE_BYTES)
      yield { kind: 'gap', position, bytes: next - position };
    position = next;
  }
}

/** Of which cluster and generation the blocks of an object are. */
class Whose {
  #generation: number | undefined;
  #cluster: Uint8Array | undefined;
  #earlier: number | undefined;

  constructor(generation: number | undefined) {
    this.#generation = generation;
  }

  takes({ generation, clusterId }: BlockHeader): boolean {
    this.#generation ??= generation;
    if (generation !== this.#generation) {
      this.#earlier ??= generation;
      return false;
    }
    this.#cluster ??= clusterId;
    return Buffer.compare(this.#cluster, clusterId) === 0;
  }

  rest(zeros: boolean): Rest {
    if (zeros) return { kind: 'zeros' };
    return this.#earlier === undefined
      ? { kind: 'other' }
      : { kind: 'earlier', generation: this.#earlier };
  }
}

/** The intact header of a block that says itself that it lies here. */
async function headerAt(window: Window, position: number): Promise<BlockHeader | undefined> {
  const header = readBlockHeader(await window.at(position, BLOCK_HEADER_BYTES));
  return header?.kind === 'block' && header.position === position ? header : undefined;
}

async function nextBlock(
  window: Window,
  { from, end, known, whose }: WalkOptions & { readonly from: number; readonly whose: Whose },
): Promise<number | undefined> {
  const named = known.find((position) => position > from) ?? Infinity;
  const firstPage = (Math.floor(from / PAGE_BYTES) + 1) * PAGE_BYTES;
  for (let page = firstPage; page < Math.min(end, named); page += PAGE_BYTES) {
    const header = await headerAt(window, page);
    if (header !== undefined && whose.takes(header)) return page;
  }
  return named < end ? named : undefined;
}

async function isZero(window: Window, from: number, end: number): Promise<boolean> {
  for (let at = from; at < end; at += SCAN_BYTES) {
    const bytes = await window.at(at, Math.min(SCAN_BYTES, end - at));
    if (bytes.some((byte) => byte !== 0)) return false;
  }
  return true;
}

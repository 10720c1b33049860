// What lies in one object of the log, as plain lines: the object, its batches in the order of their bytes, markers, and what
// is no batch. Offsets come from the object's footer, else from rows of flushes; a file that is still being filled, or
// that a crash left, may end in a torn flush, which nobody was told of: that is told and no damage.
// Not for: how lines are printed (print.ts).
import { FloeError, isFloeError } from '../../base/error.ts';
import { openIndex } from '../../metadata/packed-index.ts';
import { COMPRESSION_NAMES } from '../../protocol/codecs.ts';
import {
  batchEnd,
  compressionType,
  crcMatches,
  isControl,
  isTransactional,
  lastOffsetDelta,
  MAGIC,
  magic,
  readBatchHeader,
} from '../../protocol/record-batch.ts';
import { type KafkaRecord, readRecords } from '../../protocol/records.ts';
import { payloadChecksum } from '../../storage/log/placed-object.ts';
import {
  BLOCK_HEADER_BYTES,
  type BlockHeader,
  footerIndex,
  readBlockHeader,
  readTrailer,
  TRAILER_BYTES,
} from '../../storage/log/wal-format.ts';
import { type ObjectBytes, Window } from './object-bytes.ts';
import { type Place, type PlacedMarker, Places } from './places.ts';
import { type Piece, type Rest, walk } from './walk.ts';

/** What the metadata knows of the object. */
export interface KnownObject {
  readonly objectId: number;
  readonly state: string;
}

/** The metadata, as far as it can be asked; all of it undefined where it can't. */
export interface DumpMetadata {
  /** Undefined: it has no row. */
  object(): Promise<KnownObject | undefined>;
  /** Adds the indexes of the object's flushes. */
  addFlushes(places: Places, object: KnownObject): Promise<void>;
  /** Undefined: the partition is gone. */
  partition(partitionId: number): Promise<PartitionName | undefined>;
}

export interface PartitionName {
  readonly topic: string;
  readonly partition: number;
}

export interface ObjectLine {
  readonly kind: 'object';
  readonly object: string;
  readonly bytes: number;
  readonly generation: number | null;
  /** Of its row; null: no row, or the metadata wasn't asked. */
  readonly state: string | null;
  /** Where offsets come from. */
  readonly offsets: 'footer' | 'metadata' | 'unknown';
  /** What there is to say of them. */
  readonly note: string;
}

interface Whose {
  readonly partitionId: number;
  /** Null: not known, or the topic is gone. */
  readonly topic: string | null;
  readonly partition: number | null;
}

export interface BatchLine extends Whose {
  readonly kind: 'batch';
  readonly position: number;
  readonly length: number;
  /** Null: not known, or the batch has none (refused, or there already). */
  readonly baseOffset: number | null;
  readonly lastOffset: number | null;
  readonly records: number;
  readonly maxTimestamp: number;
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly transactional: boolean;
  readonly control: boolean;
  readonly compression: string;
  readonly crc: 'ok' | 'wrong';
  /** Whether an entry of an index refers to it; null: no index is known that reaches so far. */
  readonly indexed: boolean | null;
}

/** The end of a transaction: one offset, no bytes. */
export interface MarkerLine extends Whose {
  readonly kind: 'marker';
  readonly offset: number;
  readonly committed: boolean;
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly timestampMs: number;
}

export interface RecordLine {
  readonly kind: 'record';
  /** Null: not known. */
  readonly offset: number | null;
  readonly record: KafkaRecord;
}

/** `damage`: what ought to be there isn't; `tail`: what comes after the last flush, as it may. */
export interface OtherLine {
  readonly kind: 'damage' | 'tail';
  readonly position: number;
  readonly bytes: number;
  readonly text: string;
}

export type DumpLine = ObjectLine | BatchLine | MarkerLine | RecordLine | OtherLine;

export interface DumpOptions {
  readonly bytes: ObjectBytes;
  /** As the object's key says; undefined: it isn't known. */
  readonly generation: number | undefined;
  /** A local write-ahead file, which grows. */
  readonly isFile: boolean;
  readonly metadata: DumpMetadata | undefined;
  readonly records: boolean;
}

/** @throws FloeError `corrupt` when no block of the log is in the object. */
export async function* dump(options: DumpOptions): AsyncGenerator<DumpLine> {
  const window = new Window(options.bytes);
  const footer = await readFooter(window);
  const indexed = await placesOf(options, footer);
  const walked = walk(window, {
    end: footer?.position ?? window.size,
    generation: options.generation,
    known: indexed.places?.blocks ?? [],
  });
  const first = (await walked.next()).value;
  refuseForeign(options.bytes, first, footer);
  yield objectLine(options, { indexed, first, footer });
  const dumper = new Dumper(options, indexed.places);
  if (footer?.fault !== undefined)
    yield {
      kind: 'damage',
      position: footer.position,
      bytes: window.size - footer.position,
      text: footer.fault,
    };
  if (first !== undefined) yield* dumper.piece(first);
  else if (footer === undefined) yield { kind: 'tail', position: 0, bytes: 0, text: 'it is empty' };
  for await (const piece of walked) yield* dumper.piece(piece);
  yield* dumper.finish();
  for (const marker of indexed.places?.markers ?? []) yield dumper.marker(marker);
}

interface Footer {
  /** Where it begins, and blocks end. */
  readonly position: number;
  readonly index: Uint8Array | undefined;
  readonly generation: number | undefined;
  readonly fault: string | undefined;
}

/** Undefined when the object has none: it isn't sealed, or holds one flush. */
async function readFooter(window: Window): Promise<Footer | undefined> {
  const trailer = readTrailer(
    (await window.at(Math.max(0, window.size - TRAILER_BYTES), TRAILER_BYTES)).slice(),
  );
  if (trailer === undefined || trailer.position + trailer.length !== window.size) return undefined;
  const { position, length } = trailer;
  const bytes = (await window.at(position, length)).slice();
  try {
    const index = footerIndex(bytes).slice();
    openIndex(index);
    return { position, index, generation: readBlockHeader(bytes)?.generation, fault: undefined };
  } catch (caught) {
    if (!isFloeError(caught, 'corrupt')) throw caught;
    return { position, index: undefined, generation: undefined, fault: caught.message };
  }
}

interface Indexed {
  /** Undefined: no index is known. */
  readonly places: Places | undefined;
  readonly from: ObjectLine['offsets'];
  readonly known: KnownObject | undefined;
}

async function placesOf({ metadata }: DumpOptions, footer: Footer | undefined): Promise<Indexed> {
  const known = await metadata?.object();
  const places = new Places();
  if (footer?.index !== undefined) {
    places.add(openIndex(footer.index));
    return { places, from: 'footer', known };
  }
  if (known !== undefined) await metadata?.addFlushes(places, known);
  if (places.count + places.markers.length > 0) return { places, from: 'metadata', known };
  return { places: undefined, from: 'unknown', known };
}

function refuseForeign(
  { name, size }: ObjectBytes,
  first: Piece | undefined,
  footer: Footer | undefined,
): void {
  if (footer !== undefined || first === undefined || first.kind === 'block') return;
  if (first.kind === 'gap' || first.content.kind !== 'other') return;
  throw new FloeError(
    'corrupt',
    `${name}: ${size} bytes without a block of the log: it is no object of the log, or its first header is damaged`,
  );
}

function objectLine(
  { bytes, generation, metadata }: DumpOptions,
  {
    indexed: { from, known },
    first,
    footer,
  }: {
    readonly indexed: Indexed;
    readonly first: Piece | undefined;
    readonly footer: Footer | undefined;
  },
): ObjectLine {
  const own = first?.kind === 'block' ? first.header.generation : undefined;
  const notes: Record<ObjectLine['offsets'], string> = {
    footer: 'offsets are those of its footer',
    metadata: "it has no footer: offsets are those of the metadata's flushes",
    unknown:
      metadata === undefined
        ? 'offsets are not known: it has no readable footer, and the metadata was not asked (--data-dir or --metadata)'
        : known === undefined
          ? 'offsets are not known: it has no readable footer, and the metadata has no row of it'
          : 'offsets are not known: it has no readable footer, and the metadata has no flushes of it',
  };
  return {
    kind: 'object',
    object: bytes.name,
    bytes: bytes.size,
    generation: own ?? footer?.generation ?? generation ?? null,
    state: known?.state ?? null,
    offsets: from,
    note: notes[from],
  };
}

/** What is wrong with a block's payload, whose batches were read up to `at`. */
function blockFault(
  { batchCount, payloadChecksum: expected }: BlockHeader,
  payload: Uint8Array,
  {
    lacking,
    at,
    intact,
  }: { readonly lacking: number; readonly at: number; readonly intact: boolean },
): string | undefined {
  if (lacking > 0) return `the last ${lacking} bytes are lacking`;
  if (at < payload.length) return 'no record batch';
  if (!intact) return 'record batches that fail their CRC';
  if (payloadChecksum(payload, batchCount) === expected) return undefined;
  return 'other batches than its header was made for';
}

class Dumper {
  readonly #options: DumpOptions;
  readonly #places: Places | undefined;
  readonly #indexEnd: number;
  readonly #names = new Map<number, Whose>();
  /** What is wrong at the end so far: damage once a block follows, else a flush that never ended. */
  #held: OtherLine[] = [];
  /** The flush of what is held. */
  #torn: Uint8Array | undefined;
  /** Offset after the batch before, in its entry. */
  #next: { readonly place: Place; offset: number } | undefined;

  constructor(options: DumpOptions, places: Places | undefined) {
    this.#options = options;
    this.#places = places;
    this.#indexEnd = places?.end ?? 0;
  }

  async *piece(piece: Piece): AsyncGenerator<DumpLine> {
    if (piece.kind === 'block') {
      if (!this.#isTorn(piece.header)) yield* this.#release('damage');
      yield* this.#block(piece);
      return;
    }
    const { position, bytes } = piece;
    if (piece.kind === 'rest') {
      this.#rest(position, bytes, piece.content);
      return;
    }
    this.#hold(position, bytes, 'no block of the log, though blocks follow');
    yield* this.#release('damage');
  }

  /** Of the same flush as what is held: its blocks may have come to the disk in any order before a crash. */
  #isTorn({ flushId }: BlockHeader): boolean {
    return this.#torn !== undefined && Buffer.compare(this.#torn, flushId) === 0;
  }

  /** After the last piece. */
  *finish(): Generator<OtherLine> {
    yield* this.#release(this.#places === undefined && this.#options.isFile ? 'tail' : 'damage');
  }

  #rest(position: number, bytes: number, content: Rest): void {
    const texts = {
      zeros: 'zeros: room for what comes',
      earlier: `blocks of generation ${content.kind === 'earlier' ? content.generation : ''}: the use of the file before`,
      other: 'no block: a flush that never ended, or remains of the use before',
    };
    this.#hold(position, bytes, texts[content.kind]);
  }

  /** Where an index says that something ought to be, it is damage for sure; beyond it never. */
  #hold(position: number, bytes: number, text: string): void {
    this.#held.push({ kind: 'damage', position, bytes, text });
  }

  *#release(unsure: OtherLine['kind']): Generator<OtherLine> {
    for (const line of this.#held.splice(0))
      yield { ...line, kind: this.#kindAt(line.position, unsure) };
  }

  #kindAt(position: number, unsure: OtherLine['kind']): OtherLine['kind'] {
    if (this.#places === undefined || !this.#options.isFile) return unsure;
    return position < this.#indexEnd ? 'damage' : 'tail';
  }

  async *#block({ header, payload, lacking }: Piece & { kind: 'block' }): AsyncGenerator<DumpLine> {
    const start = header.position + BLOCK_HEADER_BYTES;
    const whose = await this.whose(header.partitionId);
    let [at, intact] = [0, true];
    for (let end: number; (end = batchEnd(payload, at)) !== -1; at = end) {
      const line = this.#batch(payload, at, { end, start, whose });
      if (line.crc === 'wrong') intact = false;
      yield line;
      if (this.#options.records && line.crc === 'ok')
        yield* this.#records(payload.subarray(at, end), line);
    }
    const fault = blockFault(header, payload, { lacking, at, intact });
    if (fault === undefined) return;
    this.#torn = header.flushId;
    const from = lacking > 0 || at < payload.length ? at : 0;
    this.#hold(start + from, payload.length - from, `${fault}, in the block at ${header.position}`);
  }

  #batch(
    payload: Uint8Array,
    at: number,
    { end, start, whose }: { readonly end: number; readonly start: number; readonly whose: Whose },
  ): BatchLine {
    const header = readBatchHeader(payload, at);
    const position = start + at;
    const place = this.#places?.at(position);
    const offset = place === undefined ? null : this.#offset(place, position, header.baseOffset);
    const lastOffset = offset === null ? null : offset + lastOffsetDelta(payload, at);
    const intact = magic(payload, at) === MAGIC && crcMatches(payload, at);
    // How many offsets a damaged batch takes isn't known: nor are those after it in its run.
    if (place !== undefined && lastOffset !== null && intact)
      this.#next = { place, offset: lastOffset + 1 };
    else this.#next = undefined;
    return {
      kind: 'batch',
      ...whose,
      position,
      length: end - at,
      baseOffset: offset,
      lastOffset,
      records: header.recordCount,
      maxTimestamp: header.maxTimestamp,
      producerId: header.producerId,
      producerEpoch: header.producerEpoch,
      baseSequence: header.baseSequence,
      transactional: isTransactional(payload, at),
      control: isControl(payload, at),
      compression: COMPRESSION_NAMES[compressionType(payload, at)] ?? 'unknown',
      crc: intact ? 'ok' : 'wrong',
      indexed: this.#isOpenEnd(position) ? null : place !== undefined,
    };
  }

  /** No index is known, or none yet: a running node may have committed what lies behind the last entry. */
  #isOpenEnd(position: number): boolean {
    const { isFile } = this.#options;
    return this.#places === undefined || (isFile && position >= this.#indexEnd);
  }

  /** Batches of a run follow one another without gaps, unless they say their own offsets. */
  #offset(place: Place, position: number, own: number): number | null {
    if (place.placed) return own;
    if (position === place.position) return place.baseOffset;
    // A batch before it in the run couldn't be read.
    return this.#next?.place === place ? this.#next.offset : null;
  }

  *#records(batch: Uint8Array, { baseOffset, position, length }: BatchLine): Generator<DumpLine> {
    let records: readonly KafkaRecord[];
    try {
      records = readRecords(batch, { baseOffset: baseOffset ?? 0 });
    } catch (caught) {
      if (!isFloeError(caught)) throw caught;
      yield {
        kind: 'damage',
        position,
        bytes: length,
        text: `its records can't be read: ${caught.message}`,
      };
      return;
    }
    for (const record of records)
      yield { kind: 'record', offset: baseOffset === null ? null : record.offset, record };
  }

  async marker({ partitionId, ...marker }: PlacedMarker): Promise<MarkerLine> {
    const { offset, committed, producerId, producerEpoch, timestampMs } = marker;
    const whose = await this.whose(partitionId);
    return { kind: 'marker', ...whose, offset, committed, producerId, producerEpoch, timestampMs };
  }

  async whose(partitionId: number): Promise<Whose> {
    let found = this.#names.get(partitionId);
    if (found === undefined) {
      const name = await this.#options.metadata?.partition(partitionId);
      found = { partitionId, topic: name?.topic ?? null, partition: name?.partition ?? null };
      this.#names.set(partitionId, found);
    }
    return found;
  }
}

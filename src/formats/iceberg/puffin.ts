// Puffin files: named blobs behind one JSON footer. Written here for deletion vectors (v3), one blob per data file;
// read as far as their blobs' places. Source: Puffin spec ("File structure", "deletion-vector-v1").
// Not for: what is inside a vector (deletion-vector.ts).
import { FloeError } from '../../base/error.ts';
import { writeDeletionVector } from './deletion-vector.ts';
import type { DeletedRows } from './position-deletes.ts';
import type { DataFile, FileMetrics } from './types.ts';

const MAGIC = new TextEncoder().encode('PFA1');
/** Reserved field id of the row position, which a deletion vector is about. */
const ROW_POSITION_ID = 2147483645;
/** Payload length, flags and magic behind the footer's JSON. */
const FOOTER_TAIL_BYTES = 12;

const NO_METRICS: FileMetrics = {
  columnSizes: new Map(),
  valueCounts: new Map(),
  nullValueCounts: new Map(),
  nanValueCounts: new Map(),
  lowerBounds: new Map(),
  upperBounds: new Map(),
};

/** A data file and all of its deleted rows (rule K5: the union of everything that was deleted before and now). */
export interface VectorInput extends DeletedRows {
  readonly data: Pick<DataFile, 'specId' | 'partition'>;
}

/** One Puffin file with a deletion vector for each data file, and their descriptions for the manifest. */
export async function writeVectors(
  path: string,
  inputs: readonly VectorInput[],
): Promise<{ readonly files: readonly DataFile[]; readonly bytes: Uint8Array }> {
  const blobs: Uint8Array[] = [];
  const places: { readonly offset: number; readonly length: number }[] = [];
  let offset = MAGIC.length;
  for (const { positions } of inputs) {
    const blob = await writeDeletionVector(positions);
    blobs.push(blob);
    places.push({ offset, length: blob.length });
    offset += blob.length;
  }
  const payload = new TextEncoder().encode(
    JSON.stringify({
      blobs: inputs.map((input, n) => ({
        type: 'deletion-vector-v1',
        fields: [ROW_POSITION_ID],
        // Unknown while it is written: the specification's −1.
        'snapshot-id': -1,
        'sequence-number': -1,
        ...places[n]!,
        properties: {
          'referenced-data-file': input.filePath,
          cardinality: String(input.positions.length),
        },
      })),
      properties: { 'created-by': 'floe' },
    }),
  );
  const tail = new Uint8Array(FOOTER_TAIL_BYTES);
  new DataView(tail.buffer).setUint32(0, payload.length, true);
  tail.set(MAGIC, 8);
  const bytes = new Uint8Array(Buffer.concat([MAGIC, ...blobs, MAGIC, payload, tail]));
  const files = inputs.map(
    (input, n): DataFile => ({
      content: 1,
      filePath: path,
      fileFormat: 'PUFFIN',
      specId: input.data.specId,
      partition: input.data.partition,
      recordCount: input.positions.length,
      fileSizeInBytes: bytes.length,
      metrics: NO_METRICS,
      referencedDataFile: input.filePath,
      contentOffset: places[n]!.offset,
      contentSizeInBytes: places[n]!.length,
    }),
  );
  return { files, bytes };
}

/** The blob of a deletion vector inside its file. @throws FloeError `corrupt`. */
export function vectorBlob(
  puffin: Uint8Array,
  file: Pick<DataFile, 'filePath' | 'contentOffset' | 'contentSizeInBytes'>,
): Uint8Array {
  const { contentOffset: start, contentSizeInBytes: size, filePath } = file;
  if (start === undefined || size === undefined)
    throw new FloeError('corrupt', `deletion vector in ${filePath} without offset or size`);
  if (Buffer.compare(puffin.subarray(0, 4), MAGIC) !== 0)
    throw new FloeError('corrupt', `${filePath} is no Puffin file`);
  return puffin.subarray(start, start + size);
}

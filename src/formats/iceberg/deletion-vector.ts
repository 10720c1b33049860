// Deletion vectors (v3): the blob in a Puffin file (puffin.ts) that names the deleted rows of one data file.
// Layout: length (4, big endian), magic, a 64-bit Roaring bitmap, CRC-32 (4, big endian). Source: Puffin spec,
// "deletion-vector-v1"; Roaring format spec, "64-bit extension" (keys of 32 bits, one 32-bit bitmap each).
import { crc32 } from 'node:zlib';
import { FloeError } from '../../base/error.ts';
import { lazyPackage } from '../../base/lazy.ts';

/** Its memory is reserved when it is loaded, in each thread. */
const roaring = lazyPackage<typeof import('roaring-wasm')>('roaring-wasm');

const MAGIC = Uint8Array.of(0xd1, 0xd3, 0x39, 0x64);

const corrupt = (why: string) => new FloeError('corrupt', `deletion vector: ${why}`);

/**
 * The deleted positions, ascending.
 * @param maxRows a bitmap of a few hundred bytes can stand for billions of rows: past this it isn't unfolded
 * @throws FloeError `corrupt`; `exhausted` past `maxRows`.
 */
export async function readDeletionVector(blob: Uint8Array, maxRows: number): Promise<Float64Array> {
  await roaring().roaringLibraryInitialize();
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength);
  if (blob.length < 20) throw corrupt('too short');
  const length = view.getUint32(0);
  if (length + 8 !== blob.length) throw corrupt(`says ${length} bytes, has ${blob.length - 8}`);
  const body = blob.subarray(4, 4 + length);
  if (Buffer.compare(body.subarray(0, 4), MAGIC) !== 0) throw corrupt('wrong magic number');
  if (crc32(body) !== view.getUint32(4 + length)) throw corrupt('wrong checksum');
  return readBitmap64(body.subarray(4), maxRows);
}

/** The blob that names `positions`, ascending and each once. */
export async function writeDeletionVector(positions: Float64Array): Promise<Uint8Array> {
  await roaring().roaringLibraryInitialize();
  const body = Buffer.concat([MAGIC, writeBitmap64(positions)]);
  const blob = new Uint8Array(body.length + 8);
  const view = new DataView(blob.buffer);
  view.setUint32(0, body.length);
  blob.set(body, 4);
  view.setUint32(4 + body.length, crc32(body));
  return blob;
}

/** A 64-bit Roaring bitmap: a count, then a 32-bit bitmap under each high half. */
function writeBitmap64(positions: Float64Array): Uint8Array {
  const parts: Uint8Array[] = [];
  let count = 0;
  for (let start = 0; start < positions.length; ) {
    const high = Math.floor(positions[start]! / 2 ** 32);
    let end = start + 1;
    while (end < positions.length && positions[end]! < (high + 1) * 2 ** 32) end += 1;
    const low = Uint32Array.from(
      positions.subarray(start, end),
      (position) => position - high * 2 ** 32,
    );
    const key = new Uint8Array(4);
    new DataView(key.buffer).setUint32(0, high, true);
    parts.push(key, writeBitmap32(low));
    count += 1;
    start = end;
  }
  const head = new Uint8Array(8);
  new DataView(head.buffer).setBigUint64(0, BigInt(count), true);
  return Buffer.concat([head, ...parts]);
}

function writeBitmap32(values: Uint32Array): Uint8Array {
  const bitmap = new (roaring().RoaringBitmap32)(values);
  try {
    bitmap.runOptimize();
    return new Uint8Array(bitmap.serialize('portable'));
  } finally {
    bitmap.dispose();
  }
}

/** A serialised 64-bit Roaring bitmap of row positions. */
export function readBitmap64(bytes: Uint8Array, maxRows: number): Float64Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 8) throw corrupt('a bitmap has a count');
  const count = view.getBigUint64(0, true);
  if (count > BigInt(bytes.length >> 2)) throw corrupt(`${count} bitmaps in fewer bytes`);
  const parts: { readonly high: number; readonly low: Uint32Array }[] = [];
  let at = 8;
  let total = 0;
  let previous = -1;
  for (let n = 0; n < Number(count); n += 1) {
    if (at + 4 > bytes.length) throw corrupt('ends too early');
    const high = view.getUint32(at, true);
    if (high <= previous || high > 0x7fff_ffff) throw corrupt(`key ${high} out of order or range`);
    previous = high;
    const { low, size } = readBitmap32(bytes.subarray(at + 4), maxRows - total);
    parts.push({ high, low });
    total += low.length;
    at += 4 + size;
  }
  if (at !== bytes.length) throw corrupt('has bytes left over');
  return joined(parts, total);
}

function readBitmap32(
  bytes: Uint8Array,
  maxRows: number,
): { readonly low: Uint32Array; readonly size: number } {
  let bitmap: InstanceType<ReturnType<typeof roaring>['RoaringBitmap32']> | undefined;
  try {
    bitmap = roaring().RoaringBitmap32.deserialize('portable', bytes);
    if (bitmap.size > maxRows)
      throw new FloeError('exhausted', `a deletion vector names more than ${maxRows} rows`);
    return {
      low: bitmap.toUint32Array(),
      size: bitmap.getSerializationSizeInBytes('portable'),
    };
  } catch (caught) {
    if (caught instanceof FloeError) throw caught;
    throw corrupt(FloeError.from(caught).message);
  } finally {
    bitmap?.dispose();
  }
}

function joined(
  parts: readonly { readonly high: number; readonly low: Uint32Array }[],
  total: number,
): Float64Array {
  const positions = new Float64Array(total);
  let at = 0;
  for (const { high, low } of parts) {
    const base = high * 2 ** 32;
    for (const value of low) positions[at++] = base + value;
  }
  return positions;
}

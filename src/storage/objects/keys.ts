// What a key may look like, in what order keys come, and how a key becomes a URI. One rule for all stores, so
// that what works on a laptop works on S3. Not for: which keys exist (storage/paths.ts).
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import type { ObjectStore } from './object-store.ts';

/** S3's limit, in UTF-8 bytes. */
const MAX_KEY_BYTES = 1024;
/** The limit of common file systems for one path segment, in UTF-8 bytes. */
const MAX_SEGMENT_BYTES = 255;
/** First segment of names that a store keeps for itself. */
export const RESERVED_SEGMENT = '.floe-tmp';

/** @throws FloeError `invalid` unless `key` is a relative path of plain segments (no `..`, no empty one, no control character). */
export function checkKey(key: string): void {
  const wrong = keyFault(key);
  if (wrong !== undefined)
    throw new FloeError('invalid', `object key ${JSON.stringify(key)} ${wrong}`);
}

function keyFault(key: string): string | undefined {
  if (key.length === 0) return 'is empty';
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `is longer than ${MAX_KEY_BYTES} bytes`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f\\]/.test(key)) return 'has a control character or a backslash';
  if (!key.isWellFormed()) return 'is not well-formed Unicode';
  for (const [index, segment] of key.split('/').entries()) {
    if (segment === '' || segment === '.' || segment === '..')
      return `has the segment ${JSON.stringify(segment)}`;
    if (index === 0 && segment === RESERVED_SEGMENT) return `starts with the reserved "${segment}"`;
    if (segment.length > MAX_SEGMENT_BYTES / 4 && Buffer.byteLength(segment) > MAX_SEGMENT_BYTES)
      return `has a segment longer than ${MAX_SEGMENT_BYTES} bytes`;
  }
  return undefined;
}

/** Order of keys by their UTF-8 bytes, which is not JavaScript's order once surrogates occur. */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above all others. */
const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit);

/**
 * `store`'s URI of `key`, as engines take it (`file:///…`, `s3://…`). A folder's path stands in it as it is: Iceberg's
 * locations are plain text, and no engine decodes `%20` in them.
 */
export function objectUri(store: Pick<ObjectStore, 'uri'>, key: string): string {
  return `${plainRoot(store)}/${key}`;
}

/** The key behind a URI of {@link objectUri}; undefined when it lies outside `store`. */
export function keyOfUri(store: Pick<ObjectStore, 'uri'>, uri: string): string | undefined {
  const root = `${plainRoot(store)}/`;
  return uri.startsWith(root) ? uri.slice(root.length) : undefined;
}

/** The store's own URI is a real URI, with what must be escaped escaped. */
function plainRoot({ uri }: Pick<ObjectStore, 'uri'>): string {
  return uri.startsWith('file:')
    ? `file://${decodeURIComponent(uri.slice('file://'.length))}`
    : uri;
}

/** A body given whole or in parts, as parts. */
export function bodyParts(body: Uint8Array | readonly Uint8Array[]): readonly Uint8Array[] {
  return body instanceof Uint8Array ? [body] : body;
}

/** Bytes in all parts. */
export function bodySize(parts: readonly Uint8Array[]): number {
  let size = 0;
  for (const part of parts) size += part.length;
  return size;
}

/** The byte range that a get asks for, against an object of `size` bytes. */
export function clampRange(
  range: { readonly start?: number; readonly length?: number; readonly into?: Uint8Array },
  size: number,
): { readonly start: number; readonly length: number } {
  const start = Math.min(range.start ?? 0, size);
  assert(start >= 0 && (range.length ?? 0) >= 0, 'a range is not negative');
  const wanted = Math.min(range.length ?? Infinity, range.into?.length ?? Infinity);
  return { start, length: Math.min(wanted, size - start) };
}

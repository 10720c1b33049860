// What the S3 double holds: buckets of objects in memory, their former versions for stale reads, and uploads in parts.
// Every operation takes effect at once, in call order. Not for: HTTP, latency and faults (double.ts).
import { crc32 } from '@node-rs/crc32';
import { compareKeys } from '../../src/storage/objects/keys.ts';

/** One object as it lies in a bucket. */
export interface Held {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly modifiedMs: number;
  readonly contentType: string;
  /** Base64, of an object that came with one. */
  readonly crc32: string | undefined;
}

/** Headers that make a write or read conditional. */
export interface Conditions {
  readonly ifMatch: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

export interface Upload {
  readonly id: string;
  readonly key: string;
  readonly startedMs: number;
  readonly contentType: string;
  readonly parts: Map<number, { readonly bytes: Buffer; readonly etag: string }>;
}

export interface ListRequest {
  readonly prefix: string;
  readonly after: string;
  readonly delimiter: string;
  readonly maxKeys: number;
}

export interface ListPage {
  readonly keys: readonly string[];
  readonly prefixes: readonly string[];
  /** Where the next page begins, undefined on the last. */
  readonly next: string | undefined;
}

/** Not MD5, which S3 doesn't promise either: tells two bodies apart. */
export const etagOf = (bytes: Buffer): string =>
  `"${crc32(bytes).toString(16).padStart(8, '0')}${bytes.length.toString(16).padStart(24, '0')}"`;

export class Bucket {
  readonly #objects = new Map<string, Held>();
  /** What stood under a key before the last change; undefined: nothing did. */
  readonly #before = new Map<string, Held | undefined>();
  /** Keys in byte order, made anew after a change. */
  #sorted: string[] | undefined;
  readonly uploads = new Map<string, Upload>();

  get size(): number {
    return this.#objects.size;
  }

  /** Bytes of all objects. */
  get bytes(): number {
    let sum = 0;
    for (const { bytes } of this.#objects.values()) sum += bytes.length;
    return sum;
  }

  get(key: string): Held | undefined {
    return this.#objects.get(key);
  }

  /** As a reader sees it whom the last change has not reached. */
  before(key: string): Held | undefined {
    return this.#before.get(key);
  }

  /** False when a condition does not hold: nothing happened. */
  put(key: string, held: Held, { ifMatch, ifNoneMatch }: Conditions): boolean {
    const present = this.#objects.get(key);
    if (ifNoneMatch === '*' && present !== undefined) return false;
    if (ifMatch !== undefined && present?.etag !== ifMatch) return false;
    this.#change(key, held);
    return true;
  }

  delete(key: string): void {
    if (this.#objects.has(key)) this.#change(key, undefined);
  }

  #change(key: string, held: Held | undefined): void {
    const present = this.#objects.get(key);
    // Only the small are kept for stale reads: memory.
    this.#before.set(
      key,
      present !== undefined && present.bytes.length <= 65_536 ? present : undefined,
    );
    if (held === undefined) this.#objects.delete(key);
    else this.#objects.set(key, held);
    if ((present === undefined) !== (held === undefined)) this.#sorted = undefined;
  }

  keys(): readonly string[] {
    this.#sorted ??= [...this.#objects.keys()].sort(compareKeys);
    return this.#sorted;
  }

  list({ prefix, after, delimiter, maxKeys }: ListRequest): ListPage {
    const keys: string[] = [];
    const prefixes: string[] = [];
    for (const key of this.keys()) {
      if (!key.startsWith(prefix) || (after !== '' && compareKeys(key, after) <= 0)) continue;
      const cut = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
      const folder = cut === -1 ? undefined : key.slice(0, cut + delimiter.length);
      if (folder !== undefined && (folder === prefixes.at(-1) || after.startsWith(folder)))
        continue;
      if (keys.length + prefixes.length >= maxKeys) {
        const last = [keys.at(-1) ?? '', prefixes.at(-1) ?? ''].sort(compareKeys)[1]!;
        return { keys, prefixes, next: last };
      }
      if (folder === undefined) keys.push(key);
      else prefixes.push(folder);
    }
    return { keys, prefixes, next: undefined };
  }
}

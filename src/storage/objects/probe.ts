// Asks a store at start whether it honours conditional writes. One that ignores `If-None-Match: *` would let two
// brokers overwrite each other in silence, so Floe refuses to run on it.
import { FloeError, isFloeError } from '../../base/error.ts';
import type { ObjectStore } from './object-store.ts';

/**
 * Writes, reads and deletes one small object under `key`, which must be unused.
 * @throws FloeError `unsupported` when a second exclusive put succeeds, else the store's own error.
 */
export async function probeConditionalWrites(store: ObjectStore, key: string): Promise<void> {
  const body = Buffer.from('floe: is this store fit?\n');
  await store.put(key, body, { ifNoneMatch: true });
  try {
    const second = await store.put(key, Buffer.from('overwritten'), { ifNoneMatch: true }).then(
      () => undefined,
      (caught: unknown) => caught,
    );
    if (second !== undefined && !isFloeError(second, 'conflict')) throw second;
    const unchanged = Buffer.compare(await store.get(key), body) === 0;
    if (second === undefined || !unchanged) {
      throw new FloeError(
        'unsupported',
        `${store.uri} ignores "If-None-Match: *": two writers would overwrite each other. ` +
          'Use a store with conditional writes (AWS S3, MinIO, R2, GCS by its XML API, Ceph ≥ 19…)',
      );
    }
  } finally {
    await store.delete([key]).catch(() => {});
  }
}

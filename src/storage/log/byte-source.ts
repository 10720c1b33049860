// Where bytes of log objects come from: the object store, or local files by way of a reader thread.
// Both fill shared memory that the caller owns. Not for: what the bytes mean, and which to read (reader.ts).
import { FloeError } from '../../base/error.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { type Purpose, storeFor } from '../objects/purposes.ts';
import { isWalKey } from '../paths.ts';
import type { ObjectRef } from './entries.ts';

/** Who waits: consumers go first, maintenance last. */
export type ReadPurpose = 'consumer' | 'table' | 'maintenance';

/** One read call: fills `into` from `position` on. */
export interface ByteRead {
  readonly position: number;
  /** In shared memory where another thread does the reading. */
  readonly into: Uint8Array;
  /** How many bytes must be there; the rest of `into` is filled as far as the object goes. Default: all. */
  readonly need?: number;
}

export interface ByteSource {
  /**
   * Fills every `into` whole.
   * @throws FloeError `not-found` (no such object), `corrupt` (the object ends before), `unavailable`, `cancelled`.
   */
  read(
    object: ObjectRef,
    reads: readonly ByteRead[],
    options: { readonly purpose: ReadPurpose; readonly signal?: AbortSignal },
  ): Promise<void>;
  /** Reads whose position and length are multiples of this take no detour. Default: 1. */
  readonly alignment?: number;
  /** These objects are gone: lets go of what is held open, or their space would not come back. */
  forget?(keys: readonly string[]): void;
  /** Bytes of this object came damaged, perhaps on their way only: what is kept of them between here and the store is not to be read again. */
  distrust?(key: string): void;
}

/** Reads by range GETs of the store, all at once. */
export function objectSource(store: ObjectStore): ByteSource {
  return {
    async read(object, reads, { purpose, signal }) {
      const view = storeFor(store, storePurpose(purpose, object.key));
      await Promise.all(
        reads.map(async ({ position, into, need = into.length }) => {
          const found = await view.get(object.key, {
            start: position,
            length: into.length,
            into,
            ...(signal === undefined ? {} : { signal }),
          });
          if (found.length < need) throw tooShort(object.key, position, need);
        }),
      );
    },
  };
}

/** What consumers read of single flushes is what was just written; what has been compacted is the past. */
function storePurpose(purpose: ReadPurpose, key: string): Purpose {
  if (purpose === 'maintenance') return 'compaction';
  if (purpose === 'table') return 'tables';
  return isWalKey(key) ? 'tail' : 'catch-up';
}

/** The object ends before the last byte asked for. */
export function tooShort(key: string, position: number, length: number): FloeError {
  return new FloeError('corrupt', `${key} ends before ${position + length}`, {
    details: { key, position, length },
  });
}

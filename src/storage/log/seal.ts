// Seals WAL files, strictly in the order in which they were filled: footer written and synced, then flush rows swapped
// for entries. Order matters: flush rows must always be the newest part of every partition's index, so that readers
// find rows and entries without a hole between. A file that can't be sealed now holds back those after it.
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { SqliteLog } from '../../metadata/sqlite/log.ts';
import type { FileIndex } from './file-index.ts';
import type { WalFiles } from './wal-file.ts';
import { buildFooter, clusterTag } from './wal-format.ts';

export interface SealerOptions {
  readonly log: Pick<SqliteLog, 'sealNow'>;
  readonly wal: WalFiles;
  readonly clusterId: string;
  readonly logger: Logger;
  /** Told after an object's flush rows gave way to entries. */
  readonly onSealed?: (objectId: number) => void;
}

export class Sealer {
  readonly #options: SealerOptions;
  readonly #tag: Uint8Array;
  readonly #queue: FileIndex[] = [];

  constructor(options: SealerOptions) {
    this.#options = options;
    this.#tag = clusterTag(options.clusterId);
  }

  /** Files that wait, the present one's failure included. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Seals `file` after all that wait. A failure is logged; the queue is tried again with the next file or start. */
  add(file: FileIndex): void {
    this.#queue.push(file);
    while (this.#queue.length > 0) {
      try {
        this.#seal(this.#queue[0]!);
      } catch (caught) {
        const { message } = FloeError.from(caught);
        const { key } = this.#queue[0]!.file;
        this.#options.logger.warn(
          { file: key, error: message },
          'sealing failed, tried again later',
        );
        return;
      }
      this.#queue.shift();
    }
  }

  #seal(index: FileIndex): void {
    const { log, wal, onSealed } = this.#options;
    const { objectId, key, generation } = index.file;
    const merged = index.merge();
    const footer = buildFooter(index.end, merged.bytes, { clusterId: this.#tag, generation });
    const bytes = wal.seal(key, index.end, footer);
    log.sealNow({ objectId, bytes, entries: index.entries(merged, index.end) });
    onSealed?.(objectId);
  }
}

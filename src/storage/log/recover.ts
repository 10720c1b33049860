// What a start does with the WAL files that an earlier life left: each is sealed after its last committed byte, so a
// torn or unsynced tail beyond it vanishes; files that no commit refers to are taken back.
// L11: what is committed must exist on disk; a committed flush whose blocks aren't there is damage, reported by name.
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import { isMarker } from '../../metadata/packed-index.ts';
import type { SqliteLog } from '../../metadata/sqlite/log.ts';
import { FileIndex } from './file-index.ts';
import type { Sealer } from './seal.ts';
import type { WalFiles } from './wal-file.ts';
import { BLOCK_HEADER_BYTES, checkBlock, clusterTag } from './wal-format.ts';

export interface RecoverOptions {
  readonly log: SqliteLog;
  readonly wal: WalFiles;
  readonly sealer: Sealer;
  readonly clusterId: string;
  readonly logger: Logger;
}

export interface Recovered {
  readonly sealed: number;
  readonly retired: number;
  /** Files with committed flushes that aren't on disk as they should be. */
  readonly damaged: readonly string[];
}

export function recoverFiles(options: RecoverOptions): Recovered {
  const { log, wal, sealer, logger } = options;
  const known = log.files();
  const open = known.filter((file) => file.state === 'open');
  const damaged: string[] = [];
  // In the order in which they were filled; see seal.ts.
  for (const file of open.toSorted((a, b) => a.generation - b.generation)) {
    const index = new FileIndex(file);
    for (const flush of log.flushesOf(file.objectId)) index.add(flush.index, flush.commitNumber);
    try {
      checkNewest(options, index);
    } catch (caught) {
      damaged.push(file.key);
      const error = FloeError.from(caught, file.key).message;
      logger.error({ file: file.key, error }, 'L11: a committed flush is damaged on disk');
    }
    sealer.add(index);
  }
  // A crash may bring back the name of a file whose removal was recorded: nothing syncs removals.
  const kept = known.filter((file) => file.state !== 'deleted');
  const keys = new Set(kept.map((file) => file.key));
  const strays = wal.names().filter((key) => !keys.has(key));
  for (const key of strays) wal.retire(key);
  return { sealed: open.length - sealer.waiting, retired: strays.length, damaged };
}

/** Blocks looked at per file: what a lying disk loses is what was written last. */
const CHECKED_BLOCKS = 256;

function checkNewest({ wal, clusterId }: RecoverOptions, index: FileIndex): void {
  const { key, generation } = index.file;
  const tag = clusterTag(clusterId);
  const { count, blockPositions, partitionIds, kinds } = index.merge();
  const partitionOf = new Map<number, number>();
  for (let n = 0; n < count; n += 1)
    if (!isMarker(kinds[n]!)) partitionOf.set(blockPositions[n]!, partitionIds[n]!);
  const newest = [...partitionOf.keys()].sort((a, b) => b - a).slice(0, CHECKED_BLOCKS);
  for (const position of newest) {
    const header = wal.read(key, position, BLOCK_HEADER_BYTES);
    const partitionId = partitionOf.get(position)!;
    checkBlock(header, 0, { clusterId: tag, generation, partitionId, position });
  }
}

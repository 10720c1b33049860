// What a start does with the WAL files that an earlier life left: each is sealed after its last committed byte, so a
// torn or unsynced tail beyond it vanishes; files that no commit refers to are taken back.
// L11: what is committed must exist on disk; a committed flush whose blocks aren't there is damage, reported by name.
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import { openIndex, type PackedIndex } from '../../metadata/packed-index.ts';
import type { KnownFile, SqliteLog } from '../../metadata/sqlite/log.ts';
import { FileIndex } from './file-index.ts';
import type { WalFiles } from './wal-file.ts';
import { BLOCK_HEADER_BYTES, buildFooter, checkBlock, clusterTag } from './wal-format.ts';

export interface RecoverOptions {
  readonly log: SqliteLog;
  readonly wal: WalFiles;
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
  const { log, wal, logger } = options;
  const known = new Map(log.files().map((file) => [file.key, file]));
  const damaged: string[] = [];
  let sealed = 0;
  for (const file of known.values()) {
    if (file.state !== 'open') continue;
    try {
      sealFile(options, file);
      sealed += 1;
    } catch (caught) {
      damaged.push(file.key);
      const error = FloeError.from(caught, file.key).message;
      logger.error({ file: file.key, error }, 'L11: a committed flush is damaged on disk');
    }
  }
  const strays = wal.names().filter((key) => !known.has(key));
  for (const key of strays) wal.retire(key);
  return { sealed, retired: strays.length, damaged };
}

function sealFile({ log, wal, clusterId }: RecoverOptions, file: KnownFile): void {
  const index = new FileIndex(file.objectId);
  let end = 0;
  for (const flush of log.flushesOf(file.objectId)) {
    index.add(flush.index, flush.commitNumber);
    const { count, positions, lengths } = openIndex(flush.index);
    for (let n = 0; n < count; n += 1) end = Math.max(end, positions[n]! + lengths[n]!);
  }
  const tag = clusterTag(clusterId);
  const { generation } = file;
  const merged = index.merge();
  checkNewest(wal, file, { merged, tag });
  const footer = buildFooter(end, merged.bytes, { clusterId: tag, generation });
  const { bytes } = wal.sealOld(file.key, end, footer);
  log.sealNow({ objectId: file.objectId, bytes, entries: index.entries(merged, end) });
}

/** Blocks looked at per file: what a lying disk loses is what was written last. */
const CHECKED_BLOCKS = 256;

function checkNewest(
  wal: WalFiles,
  { key, generation }: KnownFile,
  { merged, tag }: { readonly merged: PackedIndex; readonly tag: Uint8Array },
): void {
  const partitionOf = new Map<number, number>();
  for (let n = 0; n < merged.count; n += 1)
    partitionOf.set(merged.blockPositions[n]!, merged.partitionIds[n]!);
  const newest = [...partitionOf.keys()].sort((a, b) => b - a).slice(0, CHECKED_BLOCKS);
  for (const position of newest) {
    const header = wal.read(key, position, BLOCK_HEADER_BYTES);
    const partitionId = partitionOf.get(position)!;
    checkBlock(header, 0, { clusterId: tag, generation, partitionId, position });
  }
}

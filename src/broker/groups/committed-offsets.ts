// Committed offsets on their way to the store and in memory: written before they are seen, removed likewise.
// Not for: who may commit and what expires (offsets.ts).
import type { FloeError } from '../../base/error.ts';
import type { StoredOffset } from '../../metadata/groups.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { type Entry, storeFault } from './entry.ts';
import type { ChangeWriter } from './writer.ts';

/** A position to commit; the partition was resolved by the caller. */
export interface OffsetToCommit {
  readonly partitionId: number;
  readonly offset: number;
  readonly leaderEpoch: number;
  readonly metadata: string;
}

export interface CommitOptions {
  readonly nowMs: number;
  /** The request's own (OffsetCommit v2–4), −1 for the broker's. */
  readonly retentionMs: number;
  /** Longest metadata, bytes. */
  readonly maxMetadataBytes: number;
}

export class CommittedOffsets {
  readonly #writer: ChangeWriter;
  readonly #warn: (entry: Entry, error: FloeError, message: string) => void;

  constructor(
    writer: ChangeWriter,
    warn: (entry: Entry, error: FloeError, message: string) => void,
  ) {
    this.#writer = writer;
    this.#warn = warn;
  }

  /** Stores positions before it returns an error code for each, in order. */
  async commit(
    entry: Entry,
    offsets: readonly OffsetToCommit[],
    { nowMs, retentionMs, maxMetadataBytes }: CommitOptions,
  ): Promise<readonly number[]> {
    const codes = offsets.map(({ metadata }) =>
      Buffer.byteLength(metadata) > maxMetadataBytes ? ErrorCode.OFFSET_METADATA_TOO_LARGE : 0,
    );
    const expireMs = retentionMs >= 0 ? nowMs + retentionMs : -1;
    const rows = offsets
      .filter((_, index) => codes[index] === 0)
      .map((offset) => ({ ...offset, commitMs: nowMs, expireMs }));
    const { error, gone } = await this.#store(entry, rows);
    return codes.map((code, index) => {
      if (code !== 0) return code;
      if (error !== undefined) return storeFault(error);
      return gone.includes(offsets[index]!.partitionId) ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION : 0;
    });
  }

  async #store(entry: Entry, offsets: readonly StoredOffset[]) {
    if (offsets.length === 0) return { error: undefined, gone: [] };
    const { groupId } = entry.group;
    entry.commits += 1;
    const result = await this.#writer.write(entry.held, {
      kind: 'offsets',
      groupId,
      offsets,
    });
    entry.commits -= 1;
    if (result.error !== undefined) this.#warn(entry, result.error, 'could not store offsets');
    else
      for (const offset of offsets)
        if (!result.gone.includes(offset.partitionId))
          entry.offsets.set(offset.partitionId, offset);
    return result;
  }

  async remove(entry: Entry, partitionIds: readonly number[]): Promise<FloeError | undefined> {
    const seen = partitionIds.map((partitionId) => entry.offsets.get(partitionId));
    const { groupId } = entry.group;
    const { error } = await this.#writer.write(entry.held, {
      kind: 'offsets-gone',
      groupId,
      partitionIds,
    });
    if (error !== undefined) return error;
    // What was committed anew meanwhile came after the removal in the store too.
    for (const [index, partitionId] of partitionIds.entries())
      if (entry.offsets.get(partitionId) === seen[index]) entry.offsets.delete(partitionId);
    return undefined;
  }
}

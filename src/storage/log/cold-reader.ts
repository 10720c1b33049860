// What the front asks of the read side: everything that the tail cache no longer holds, and look-ups by time.
// Implemented by reader.ts; an interface so that simulation and tests can stand in.

import type { CommitSteps, OffsetAtTime, ReadRequest, ReadRun } from './log.ts';
import type { FlushReply } from './sequencer-port.ts';

export interface ColdReadRequest {
  readonly partitionId: number;
  /** Between log start and `endOffset`. */
  readonly offset: number;
  /** Nothing at or above it is returned. */
  readonly endOffset: number;
  /** At least one batch is returned, whatever its size. */
  readonly maxBytes: number;
  readonly purpose: ReadRequest['purpose'];
  readonly signal?: AbortSignal;
}

export interface ColdRead {
  readonly runs: readonly ReadRun[];
  readonly bytes: number;
  /** True when any of it was compacted by key. */
  readonly placed: boolean;
  /** Unpins; call exactly once. */
  release(): void;
}

export interface ColdReader {
  /** Learns of a commit, in commit order, before its records become visible. */
  follow(
    flush: Pick<FlushReply, 'commitNumber' | 'objectId' | 'objectKey' | 'generation' | 'index'>,
  ): void;
  /** An object's flush rows gave way to entries in the metadata store. */
  sealed(objectId: number): void;
  /** A partition was deleted. */
  removePartition(partitionId: number): void;
  /** Starts loading what these reads will ask for, all at once; the reads then find it under way. Never fails. */
  warm(requests: readonly ColdReadRequest[]): void;
  /** @throws FloeError `corrupt`, `unavailable`, `cancelled`. */
  read(request: ColdReadRequest): Promise<ColdRead>;
  /** Log.commitSteps. */
  commitSteps(partitionId: number, offset: number, endOffset: number): Promise<CommitSteps>;
  /** First record at or after the time in `[logStart, endOffset)`. */
  offsetForTime(
    partitionId: number,
    timestampMs: number,
    range: { readonly logStartOffset: number; readonly endOffset: number },
  ): Promise<OffsetAtTime | undefined>;
  /** The record with the largest timestamp in the range. */
  maxTimestamp(
    partitionId: number,
    range: { readonly logStartOffset: number; readonly endOffset: number },
  ): Promise<OffsetAtTime | undefined>;
  stop(): Promise<void>;
}

// What the front and the sequencer say to each other about flushes: small typed arrays, handed over, not copied.
// The same port is a worker thread in real life and a plain object in tests and simulation.
import { type BatchColumns, viewColumns } from '../../metadata/batch-columns.ts';
import type { FlushObject, RiderOutcome, StageRider } from '../../metadata/log.ts';

/** Columns on their way: the buffer is laid out for `capacity` batches. */
export interface ColumnsMessage {
  readonly buffer: ArrayBuffer;
  readonly capacity: number;
  readonly count: number;
}

/** A flush for the sequencer. */
export interface FlushRequest {
  /** 16 bytes, independent of where the bytes go. */
  readonly flushId: Uint8Array;
  readonly columns: ColumnsMessage;
  /** The slab that holds the bytes; the sender keeps it referenced until the reply. */
  readonly slab: number;
  /** Already durable in this object, positions filled in; undefined: the sequencer writes the local WAL. */
  readonly object?: FlushObject;
  /** Asked before, and the reply was lost: the flush id is looked up before anything is written. */
  readonly again?: boolean;
  /** Stages of table work that enter with some of the batches, or refuse them. */
  readonly riders?: readonly StageRider[];
}

/** What became of it. Element n is batch n. */
export interface FlushReply {
  readonly commitNumber: number;
  readonly committedMs: number;
  readonly objectId: number;
  readonly objectKey: string;
  /** What the headers of its blocks say. */
  readonly generation: number;
  /** The request's columns, positions filled in. */
  readonly columns: ColumnsMessage;
  readonly errorCodes: Int16Array;
  readonly baseOffsets: Float64Array;
  readonly duplicates: Uint8Array;
  /** One for each rider of the request. */
  readonly riders?: readonly RiderOutcome[];
  /** Ordinals grouped by partition. */
  readonly order: Uint32Array;
  readonly index: Uint8Array;
}

export interface SequencerPort {
  /**
   * Writes (if need be) and commits a flush. Requests commit in the order of calls.
   * @throws FloeError: nothing happened, except with `timeout` (ask again under the same flush id). `exhausted`: disk full.
   */
  submit(request: FlushRequest): Promise<FlushReply>;
  /** Takes files that nothing refers to any more (the collector's last step for local files). */
  retireFiles(keys: readonly string[]): Promise<void>;
  /** Seals the file that is being filled, if anything was committed in it: what lies in it can then be compacted. */
  roll(): Promise<void>;
}

export function columnsOf({ buffer, capacity, count }: ColumnsMessage): BatchColumns {
  return viewColumns(buffer, capacity, count);
}

// Clients under simulation: idempotent producers that resend in order until acked, plain ones that send once,
// transactional ones (transactional.ts), and readers. They write down what they were told; the auditor compares it with
// what the log holds.

import { FloeError } from '../../src/base/error.ts';
import type { TransactionAdmission } from '../../src/metadata/transactions.ts';
import {
  BATCH_HEADER_BYTES,
  baseOffset,
  batchBytes,
  crcMatches,
  isControl,
  isTransactional,
  lastOffsetDelta,
  producerId,
  storedCrc,
} from '../../src/protocol/record-batch.ts';
import type { AppendItem, ReadPartitionResult } from '../../src/storage/log/log.ts';
import { testItem } from '../../src/storage/log/test-items.ts';
import { batchId } from './batch-id.ts';
import { PowerOut } from './simulated-disk.ts';
import type { Surroundings } from './surroundings.ts';
import type { SeenMarker } from './transaction-auditor.ts';

/** A batch as its sender remembers it. */
export interface SentBatch {
  readonly id: number;
  readonly partitionId: number;
  readonly records: number;
  /** −1 for plain producers. */
  readonly producerId: number;
  readonly sequence: number;
  readonly item: AppendItem;
  /** Of a transactional producer. */
  readonly transaction: Transaction | undefined;
  /** `refused`: answered with an error by a log that went on living; it must never appear (unless sent again). */
  state: 'waiting' | 'sent' | 'acked' | 'refused' | 'unknown';
  offset: number;
  sends: number;
}

/** What a transactional producer knows of one transaction. `lost`: its end was asked for and no answer came. */
export interface Transaction {
  outcome: 'open' | 'committed' | 'aborted' | 'lost';
}

/** Who sends a batch. */
export interface Sender {
  readonly producerId: number;
  readonly epoch?: number;
  readonly sequence: number;
  readonly transaction?: Transaction;
  readonly admission?: TransactionAdmission;
}

/** One producer's stream into one partition. */
interface Stream {
  readonly partitionId: number;
  readonly producerId: number;
  /** Where its producer sends to. */
  readonly at: Surroundings;
  nextSequence: number;
  /** Not yet acked, in order. */
  readonly open: SentBatch[];
}

/** Something under way at a node. */
interface Call {
  readonly at: Surroundings;
  readonly life: number;
  readonly batches: readonly SentBatch[];
}

/** Codes that a client may meet here; anything else is a finding (L9). */
const UNKNOWN_TOPIC_OR_PARTITION = 3;
const ALLOWED = new Set([0, UNKNOWN_TOPIC_OR_PARTITION, 45, 56]);
/** And with a transaction that somebody else has ended: its producer is fenced, or the transaction over. */
const ALLOWED_IN_TRANSACTION = new Set([...ALLOWED, 47, 48, 49, 90, 120]);
const MAX_OPEN = 4;

export class Workload {
  readonly batches = new Map<number, SentBatch>();
  /** What readers saw, by partition and offset: it must stay so. */
  readonly seen = new Map<string, number>();
  /** Ends of transactions that readers met, likewise. */
  readonly markers = new Map<string, SeenMarker>();
  /** Last stable offsets by node and partition: they never go back, restarts included. */
  readonly #stable = new Map<object, Map<number, number>>();
  /** Batches that readers of committed records were given, and those they were told to leave out (L7). */
  readonly given = new Set<number>();
  readonly leftOut = new Set<number>();
  /** Somebody asked for everything below to be deleted, by partition. */
  readonly deletedBelow = new Map<number, number>();
  readonly trace: string[] = [];
  readonly deletedPartitions = new Set<number>();
  readonly #calls = new Set<Call>();
  readonly #world: Surroundings;
  readonly #streams: Stream[] = [];
  #nextId = 1;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  /** Sends, reads and what else was begun, as far as it can still be heard of. */
  get pending(): number {
    let count = 0;
    for (const call of this.#calls) {
      if (isHeard(call)) count += 1;
      else this.#calls.delete(call);
    }
    return count;
  }

  /** Counts something as under way. Call the result when it is done: false when nobody hears of it any more. */
  begin(at: Surroundings, batches: readonly SentBatch[] = []): () => boolean {
    const call = { at, life: at.lives, batches };
    this.#calls.add(call);
    return () => {
      const heard = isHeard(call);
      if (heard) this.#calls.delete(call);
      return heard;
    };
  }

  async addPartitions(partitionIds: readonly number[]): Promise<void> {
    for (const partitionId of partitionIds) {
      for (let n = 0; n < 2; n += 1) {
        const { clock, metadata } = this.#world;
        const { producerId } = await metadata.producers.initProducerId(clock.now());
        const at = this.#world.seat();
        this.#streams.push({ partitionId, producerId, at, nextSequence: 0, open: [] });
      }
    }
  }

  get partitionIds(): number[] {
    return [...new Set(this.#streams.map((stream) => stream.partitionId))].filter(
      (partitionId) => !this.deletedPartitions.has(partitionId),
    );
  }

  /** One random thing that a client may do. */
  act(): void {
    const { prng } = this.#world;
    const dice = prng.next();
    if (dice < 0.5) this.sendSome();
    else if (dice < 0.65) this.#sendPlain();
    else if (dice < 0.95) this.#try(this.#read(this.#pick(this.partitionIds)));
    else this.#try(this.#deleteRecords(this.#pick(this.partitionIds)));
  }

  /** What a client finds on its way ends the run at the next step; that it was not served, is no finding. */
  #try(work: Promise<void>): void {
    const { violations } = this.#world;
    work.catch((caught: Error) => {
      if (!(caught instanceof FloeError || caught instanceof PowerOut))
        violations.push(caught.message);
    });
  }

  #pick<T>(values: readonly T[]): T {
    return values[this.#world.prng.int(values.length)]!;
  }

  /** A random stream sends what it has open, if nothing of it is on its way, or something new. */
  sendSome(): void {
    const stream = this.#pick(this.#streams);
    if (!this.deletedPartitions.has(stream.partitionId)) this.#send(stream, true);
  }

  /** Everybody sends again what isn't acked; returns how many batches that is. */
  resendAll(): number {
    let open = 0;
    for (const stream of this.#streams) {
      if (this.deletedPartitions.has(stream.partitionId)) continue;
      this.#send(stream, false);
      open += stream.open.length;
    }
    return open;
  }

  #send(stream: Stream, fresh: boolean): void {
    if (stream.open.some((batch) => batch.state === 'sent')) {
      if (fresh && stream.open.every((b) => b.state === 'sent') && stream.open.length < MAX_OPEN)
        void this.append([this.#newBatch(stream)], stream.at);
      return;
    }
    if (fresh && stream.open.length === 0) this.#newBatch(stream);
    // In order, some in one request and some in the next: a client that pipelines.
    for (const batch of stream.open) void this.append([batch], stream.at);
  }

  #newBatch(stream: Stream): SentBatch {
    const { producerId, nextSequence: sequence } = stream;
    const batch = this.make(stream.partitionId, { producerId, sequence });
    stream.nextSequence += batch.records;
    stream.open.push(batch);
    return batch;
  }

  make(partitionId: number, sender: Sender): SentBatch {
    const { prng } = this.#world;
    const { producerId, epoch, sequence, transaction, admission } = sender;
    const id = this.#nextId++;
    const records = 1 + prng.int(3);
    const item = testItem({
      partitionId,
      records,
      bytes: 8 + prng.int(prng.next() < 0.2 ? 6_000 : 300),
      producerId,
      sequence,
      maxTimestamp: prng.int(1_000),
      id,
      ...(epoch === undefined ? {} : { epoch }),
      ...(admission === undefined ? {} : { transaction: admission }),
    });
    const batch: SentBatch = {
      id,
      partitionId,
      records,
      producerId,
      sequence,
      item,
      transaction,
      state: 'waiting',
      offset: -1,
      sends: 0,
    };
    this.batches.set(id, batch);
    return batch;
  }

  /** Several batches in one request, sent once, whatever becomes of them. */
  #sendPlain(): void {
    const { prng } = this.#world;
    const count = 1 + prng.int(4);
    const nobody = { producerId: -1, sequence: -1 };
    const batches = Array.from({ length: count }, () =>
      this.make(this.#pick(this.partitionIds), nobody),
    );
    void this.append(batches, this.#somewhere());
  }

  /** The node of some client. */
  #somewhere(): Surroundings {
    return this.#streams.length === 0 ? this.#world : this.#pick(this.#streams).at;
  }

  /** Resolves when the outcomes are noted; never if the node died first. */
  async append(batches: readonly SentBatch[], at = this.#world): Promise<void> {
    for (const batch of batches) {
      batch.state = 'sent';
      batch.sends += 1;
    }
    // As the handler does: what a broker doesn't know of (yet) is not admitted.
    if (
      batches.some(({ partitionId }) => at.node.directory.byPartition(partitionId) === undefined)
    ) {
      for (const batch of batches) this.#outcome(batch, UNKNOWN_TOPIC_OR_PARTITION, -1);
      return;
    }
    const done = this.begin(at, batches);
    const outcomes = await at.node.log.append(batches.map((batch) => batch.item));
    if (!done()) return new Promise(() => {});
    for (const [n, batch] of batches.entries())
      this.#outcome(batch, outcomes[n]!.errorCode, outcomes[n]!.baseOffset);
  }

  #outcome(batch: SentBatch, errorCode: number, offset: number): void {
    this.trace.push(`${batch.id}:${errorCode}@${offset}`);
    const allowed = batch.transaction === undefined ? ALLOWED : ALLOWED_IN_TRANSACTION;
    if (!allowed.has(errorCode)) throw new Error(`L9: batch ${batch.id} got error ${errorCode}`);
    if (errorCode !== 0) {
      batch.state = 'refused';
      return;
    }
    if (batch.state === 'acked' && batch.offset !== offset)
      throw new Error(`L5: batch ${batch.id} acked at ${batch.offset}, then at ${offset}`);
    batch.state = 'acked';
    batch.offset = offset;
    const stream = this.#streams.find((s) => s.open.includes(batch));
    stream?.open.splice(stream.open.indexOf(batch), 1);
  }

  /** A node died, or a client left it: nobody heard what became of what was under way there. */
  forget(at = this.#world): void {
    for (const call of this.#calls) {
      if (call.at !== at) continue;
      this.#calls.delete(call);
      for (const batch of call.batches) if (batch.state === 'sent') batch.state = 'unknown';
    }
  }

  /** Reads a stretch from a random offset and compares it with what anybody saw before (L1, L3). */
  async #read(partitionId: number): Promise<void> {
    const at = this.#somewhere();
    const { prng, node } = at;
    const marks = node.log.watermarks(partitionId);
    if (marks === undefined || marks.highWatermark === marks.logStartOffset) return;
    const span = marks.highWatermark - marks.logStartOffset;
    const offset = marks.logStartOffset + prng.int(span);
    await this.readFrom(partitionId, offset, { maxBytes: 1 + prng.int(20_000), at });
  }

  /** Returns the offset after the last record read. */
  async readFrom(
    partitionId: number,
    offset: number,
    { maxBytes, at }: { readonly maxBytes: number; readonly at: Surroundings },
  ): Promise<number> {
    const done = this.begin(at);
    this.#checkStable(partitionId, at);
    const result = await at.node.log.read({
      partitions: [{ partitionId, offset, maxBytes }],
      maxBytes,
      isolation: 'read_committed',
      purpose: 'consumer',
    });
    if (!done()) return offset;
    const [partition] = result.partitions;
    let next = offset;
    if (partition!.errorCode === 0) {
      const aborted = abortedBatches(partition!);
      for (const { bytes, baseOffset: first, patched } of partition!.runs) {
        // The first run may begin before the asked offset; after that there is no gap.
        if (first > next || (next > offset && first !== next))
          throw new Error(`L4: partition ${partitionId}: a gap from ${next} to ${first}`);
        next = this.#checkRun(partitionId, bytes, {
          first,
          patched,
          end: partition!.highWatermark,
          aborted,
          asked: offset,
        });
      }
    } else if (![1, 3, 56].includes(partition!.errorCode)) {
      throw new Error(`L9: a read got error ${partition!.errorCode}`);
    }
    this.trace.push(`r${partitionId}:${offset}-${next}`);
    result.release();
    return next;
  }

  #checkRun(
    partitionId: number,
    bytes: Uint8Array,
    run: {
      readonly first: number;
      readonly patched: boolean;
      readonly end: number;
      readonly aborted: ReadonlySet<number>;
      readonly asked: number;
    },
  ): number {
    let offset = run.first;
    for (let at = 0; at < bytes.length; at += batchBytes(bytes, at)) {
      if (!crcMatches(bytes, at))
        throw new Error(`L1: partition ${partitionId} @${offset}: bad CRC`);
      if (run.patched && baseOffset(bytes, at) !== offset)
        throw new Error(`L2: partition ${partitionId} @${offset} says ${baseOffset(bytes, at)}`);
      if (!isControl(bytes, at)) {
        const id = batchId(bytes, at);
        this.#see(partitionId, offset, id);
        // A run may begin with batches that end before what was asked for: of those nothing is said.
        if (offset + lastOffsetDelta(bytes, at) >= run.asked)
          this.#judge(id, run.aborted.has(offset));
      } else this.#seeMarker(partitionId, offset, bytes.subarray(at));
      offset += lastOffsetDelta(bytes, at) + 1;
      if (offset > run.end) throw new Error(`L3: partition ${partitionId}: read past the end`);
    }
    return offset;
  }

  #checkStable(partitionId: number, at: Surroundings): void {
    const marks = at.node.log.watermarks(partitionId);
    if (marks === undefined) return;
    const { lastStableOffset } = marks;
    const known = this.#stable.get(at.server) ?? new Map<number, number>();
    this.#stable.set(at.server, known);
    const before = known.get(partitionId) ?? 0;
    if (lastStableOffset < before)
      throw new Error(
        `L7: partition ${partitionId} was stable to ${before}, now ${lastStableOffset}`,
      );
    known.set(partitionId, lastStableOffset);
  }

  /** The same bytes at every fetch. */
  #seeMarker(partitionId: number, offset: number, bytes: Uint8Array): void {
    const key = `${partitionId}@${offset}`;
    const crc = storedCrc(bytes);
    const before = this.markers.get(key);
    if (before !== undefined && before.crc !== crc)
      throw new Error(`L1: the marker at ${key} has changed`);
    // Key of its only record: version i16, type i16, after header, length, attributes, deltas and key length.
    const committed = bytes[BATCH_HEADER_BYTES + 8] === 1;
    this.markers.set(key, { producerId: producerId(bytes), committed, crc });
  }

  #see(partitionId: number, offset: number, id: number): void {
    const key = `${partitionId}@${offset}`;
    const before = this.seen.get(key);
    if (before !== undefined && before !== id)
      throw new Error(`L1: ${key} was batch ${before} and is now ${id}`);
    this.seen.set(key, id);
    if (this.batches.get(id)?.partitionId !== partitionId)
      throw new Error(`L1: ${key} holds batch ${id} of another partition`);
  }

  /** What readers of committed records are told of a batch never changes. */
  #judge(id: number, aborted: boolean): void {
    (aborted ? this.leftOut : this.given).add(id);
    if (this.leftOut.has(id) && this.given.has(id))
      throw new Error(`L7: batch ${id} was given to one reader and kept from another`);
  }

  async #deleteRecords(partitionId: number): Promise<void> {
    const { node, prng } = this.#somewhere();
    const marks = node.log.watermarks(partitionId);
    if (marks === undefined) return;
    const span = marks.highWatermark - marks.logStartOffset;
    const offset = marks.logStartOffset + prng.int(Math.floor(span / 4) + 1);
    const before = this.deletedBelow.get(partitionId) ?? 0;
    this.deletedBelow.set(partitionId, Math.max(before, offset));
    await node.log.deleteRecords(partitionId, offset);
  }
}

/** False once the node died or the client has left it. */
function isHeard({ at, life }: Call): boolean {
  return life === at.lives && !at.dead;
}

/** Base offsets of the batches that a reader of committed records leaves out, as consumers find them. */
function abortedBatches({ runs, abortedTransactions }: ReadPartitionResult): ReadonlySet<number> {
  const upcoming = abortedTransactions.toSorted((a, b) => a.firstOffset - b.firstOffset);
  const open = new Set<number>();
  const found = new Set<number>();
  for (const { bytes, baseOffset: first } of runs) {
    for (let at = 0, offset = first; at < bytes.length; at += batchBytes(bytes, at)) {
      while (upcoming.length > 0 && upcoming[0]!.firstOffset <= offset)
        open.add(upcoming.shift()!.producerId);
      if (isControl(bytes, at)) open.delete(producerId(bytes, at));
      else if (isTransactional(bytes, at) && open.has(producerId(bytes, at))) found.add(offset);
      offset += lastOffsetDelta(bytes, at) + 1;
    }
  }
  return found;
}

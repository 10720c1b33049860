// Clients under simulation: idempotent producers that resend in order until acked, plain ones that send once, and
// readers. They write down what they were told; the auditor compares it with what the log holds.
import {
  baseOffset,
  batchBytes,
  crcMatches,
  lastOffsetDelta,
} from '../../src/protocol/record-batch.ts';
import type { AppendItem } from '../../src/storage/log/log.ts';
import { testItem } from '../../src/storage/log/test-items.ts';
import type { World } from './world.ts';

/** Where a batch's id stands in its bytes: the first four of the records section. */
const ID_AT = 61;

/** A batch as its sender remembers it. */
export interface SentBatch {
  readonly id: number;
  readonly partitionId: number;
  readonly records: number;
  /** −1 for plain producers. */
  readonly producerId: number;
  readonly sequence: number;
  readonly item: AppendItem;
  /** `refused`: answered with an error by a log that went on living; it must never appear (unless sent again). */
  state: 'waiting' | 'sent' | 'acked' | 'refused' | 'unknown';
  offset: number;
  sends: number;
}

/** One producer's stream into one partition. */
interface Stream {
  readonly partitionId: number;
  readonly producerId: number;
  nextSequence: number;
  /** Not yet acked, in order. */
  readonly open: SentBatch[];
}

/** Codes that a client may meet here; anything else is a finding (L9). */
const ALLOWED = new Set([0, 3, 45, 56]);
const MAX_OPEN = 4;

export class Workload {
  readonly batches = new Map<number, SentBatch>();
  /** What readers saw, by partition and offset: it must stay so. */
  readonly seen = new Map<string, number>();
  readonly trace: string[] = [];
  readonly deletedPartitions = new Set<number>();
  /** Sends and reads under way. */
  pending = 0;
  readonly #world: World;
  readonly #streams: Stream[] = [];
  #nextId = 1;

  constructor(world: World) {
    this.#world = world;
  }

  async addPartitions(partitionIds: readonly number[]): Promise<void> {
    for (const partitionId of partitionIds) {
      for (let n = 0; n < 2; n += 1) {
        const { clock, metadata } = this.#world;
        const { producerId } = await metadata.producers.initProducerId(clock.now());
        this.#streams.push({ partitionId, producerId, nextSequence: 0, open: [] });
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
    else if (dice < 0.95) void this.read(this.#pick(this.partitionIds));
    else void this.#deleteRecords(this.#pick(this.partitionIds));
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
        this.#append([this.#newBatch(stream)]);
      return;
    }
    if (fresh && stream.open.length === 0) this.#newBatch(stream);
    // In order, some in one request and some in the next: a client that pipelines.
    for (const batch of stream.open) this.#append([batch]);
  }

  #newBatch(stream: Stream): SentBatch {
    const batch = this.#make(stream.partitionId, stream.producerId, stream.nextSequence);
    stream.nextSequence += batch.records;
    stream.open.push(batch);
    return batch;
  }

  #make(partitionId: number, producerId: number, sequence: number): SentBatch {
    const { prng } = this.#world;
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
    });
    const batch: SentBatch = {
      id,
      partitionId,
      records,
      producerId,
      sequence,
      item,
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
    this.#append(
      Array.from({ length: count }, () => this.#make(this.#pick(this.partitionIds), -1, -1)),
    );
  }

  #append(batches: readonly SentBatch[]): void {
    for (const batch of batches) {
      batch.state = 'sent';
      batch.sends += 1;
    }
    const life = this.#world.lives;
    this.pending += 1;
    void this.#world.node.log.append(batches.map((batch) => batch.item)).then((outcomes) => {
      if (life !== this.#world.lives || this.#world.dead) return;
      this.pending -= 1;
      for (const [n, batch] of batches.entries())
        this.#outcome(batch, outcomes[n]!.errorCode, outcomes[n]!.baseOffset);
    });
  }

  #outcome(batch: SentBatch, errorCode: number, offset: number): void {
    this.trace.push(`${batch.id}:${errorCode}@${offset}`);
    if (!ALLOWED.has(errorCode)) throw new Error(`L9: batch ${batch.id} got error ${errorCode}`);
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

  /** The node died: nobody heard what became of what was under way. */
  forget(): void {
    this.pending = 0;
    for (const batch of this.batches.values()) if (batch.state === 'sent') batch.state = 'unknown';
  }

  /** Reads a stretch from a random offset and compares it with what anybody saw before (L1, L3). */
  async read(partitionId: number): Promise<void> {
    const { prng, node } = this.#world;
    const marks = node.log.watermarks(partitionId);
    if (marks === undefined || marks.highWatermark === marks.logStartOffset) return;
    const span = marks.highWatermark - marks.logStartOffset;
    const offset = marks.logStartOffset + prng.int(span);
    await this.readFrom(partitionId, offset, 1 + prng.int(20_000));
  }

  /** Returns the offset after the last record read. */
  async readFrom(partitionId: number, offset: number, maxBytes: number): Promise<number> {
    const life = this.#world.lives;
    this.pending += 1;
    const result = await this.#world.node.log.read({
      partitions: [{ partitionId, offset, maxBytes }],
      maxBytes,
      isolation: 'read_committed',
      purpose: 'consumer',
    });
    if (life !== this.#world.lives || this.#world.dead) return offset;
    this.pending -= 1;
    const [partition] = result.partitions;
    let next = offset;
    if (partition!.errorCode === 0) {
      for (const { bytes, baseOffset: first, patched } of partition!.runs) {
        // The first run may begin before the asked offset; after that there is no gap.
        if (first > next || (next > offset && first !== next))
          throw new Error(`L4: partition ${partitionId}: a gap from ${next} to ${first}`);
        next = this.#checkRun(partitionId, bytes, {
          first,
          patched,
          end: partition!.highWatermark,
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
    run: { readonly first: number; readonly patched: boolean; readonly end: number },
  ): number {
    let offset = run.first;
    for (let at = 0; at < bytes.length; at += batchBytes(bytes, at)) {
      if (!crcMatches(bytes, at))
        throw new Error(`L1: partition ${partitionId} @${offset}: bad CRC`);
      if (run.patched && baseOffset(bytes, at) !== offset)
        throw new Error(`L2: partition ${partitionId} @${offset} says ${baseOffset(bytes, at)}`);
      const id = new DataView(bytes.buffer, bytes.byteOffset + at + ID_AT, 4).getUint32(0);
      this.#see(partitionId, offset, id);
      offset += lastOffsetDelta(bytes, at) + 1;
      if (offset > run.end) throw new Error(`L3: partition ${partitionId}: read past the end`);
    }
    return offset;
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

  async #deleteRecords(partitionId: number): Promise<void> {
    const marks = this.#world.node.log.watermarks(partitionId);
    if (marks === undefined) return;
    const span = marks.highWatermark - marks.logStartOffset;
    const offset = marks.logStartOffset + this.#world.prng.int(Math.floor(span / 4) + 1);
    await this.#world.node.log.deleteRecords(partitionId, offset);
  }
}

// A compacted topic under simulation: one writer of keyed records, compaction by key all the time, crashes at any
// moment. What was acked is there at its offset, or a later record of its key is; what was read once never changes.
import {
  batchEnd,
  baseOffset as headerOffset,
  lastOffsetDelta,
} from '../../src/protocol/record-batch.ts';
import { buildBatch } from '../../src/protocol/record-builder.ts';
import { RecordCursor } from '../../src/protocol/record-cursor.ts';
import type { AppendItem } from '../../src/storage/log/log.ts';
import type { Surroundings } from './surroundings.ts';
import { TABLE_CONFIG } from './table-side.ts';

interface Sent {
  readonly key: string;
  /** `unknown`: the node died before it answered. */
  state: 'sent' | 'acked' | 'refused' | 'unknown';
  offset: number;
}

const KEYS = 12;
const MAX_FAILURES = 3;

export class Changelog {
  partitionId = -1;
  /** Acked records that the last audit found superseded and gone. */
  compacted = 0;
  readonly #world: Surroundings;
  /** By id, which is the value. */
  readonly #sent: Sent[] = [];
  /** Ids by offset, as ever read. */
  readonly #seen = new Map<number, number>();

  constructor(world: Surroundings) {
    this.#world = world;
  }

  async create(): Promise<void> {
    const { node, ids, clock } = this.#world;
    const topic = await node.directory.create({
      topicId: ids.uuid(),
      name: 'changelog',
      partitionCount: 1,
      config: { ...TABLE_CONFIG, 'cleanup.policy': 'compact,delete' },
      nowMs: clock.now(),
    });
    this.partitionId = topic.partitions[0]!;
    this.#world.compacted.push(this.partitionId);
  }

  /** Sends a batch of a few records. */
  act(): void {
    const { node, prng, clock } = this.#world;
    if (node.directory.byPartition(this.partitionId) === undefined) return;
    const life = this.#world.lives;
    const batch = Array.from({ length: 1 + prng.int(3) }, () => {
      const id = this.#sent.length;
      const sent: Sent = { key: `k${prng.int(KEYS)}`, state: 'sent', offset: -1 };
      this.#sent.push(sent);
      return { id, sent };
    });
    const records = batch.map(({ id, sent }) => ({
      key: sent.key,
      value: String(id).padEnd(8 + prng.int(400)),
      timestamp: clock.now(),
    }));
    const item = itemOf(this.partitionId, buildBatch(records, { compression: prng.int(5) }));
    void node.log.append([{ ...item, recordCount: records.length }]).then(([outcome]) => {
      if (life !== this.#world.lives || this.#world.dead) return;
      for (const [n, { sent }] of batch.entries()) {
        sent.state = outcome!.errorCode === 0 ? 'acked' : 'refused';
        sent.offset = outcome!.baseOffset + n;
      }
    });
  }

  /** The node died: nobody heard what became of what was under way. */
  forget(): void {
    for (const sent of this.#sent) if (sent.state === 'sent') sent.state = 'unknown';
  }

  /** Reads from the log start to the end. @throws Error naming the broken promise. */
  async audit(): Promise<void> {
    const { node } = this.#world;
    const { logStartOffset: from, highWatermark } = node.log.watermarks(this.partitionId)!;
    const found = new Map<number, number>();
    for (let offset = from, failures = 0; offset < highWatermark; ) {
      const next = await this.#world.drive(this.#read(offset, found));
      failures = next <= offset ? failures + 1 : 0;
      if (failures === MAX_FAILURES)
        throw new Error(`L4: the changelog does not read on at ${offset} of ${highWatermark}`);
      offset = Math.max(next, node.log.watermarks(this.partitionId)!.logStartOffset);
    }
    const { logStartOffset } = node.log.watermarks(this.partitionId)!;
    this.compacted = 0;
    const newest = new Map<string, number>();
    for (const [id, offset] of found) {
      const { key } = this.#sent[id]!;
      newest.set(key, Math.max(newest.get(key) ?? -1, offset));
    }
    for (const [id, { key, state, offset }] of this.#sent.entries()) {
      const at = found.get(id);
      if (state === 'refused' && at !== undefined)
        throw new Error(`L9: record ${id} of the changelog was refused and is at ${at}`);
      if (state !== 'acked' || offset < logStartOffset) continue;
      if (at !== undefined && at !== offset)
        throw new Error(`L2: record ${id} of the changelog was acked at ${offset} and is at ${at}`);
      if (at === undefined) this.compacted += 1;
      if (at === undefined && (newest.get(key) ?? -1) < offset)
        throw new Error(`L1: record ${id} of the changelog, ${key} at ${offset}, is gone`);
    }
  }

  /** T1, M3: its table has every record that was acked, those too that were superseded since, at its offset. */
  auditTable(rows: ReadonlyMap<number, number>): void {
    for (const [id, { state, offset }] of this.#sent.entries()) {
      if (state === 'acked' && rows.get(offset) !== id)
        throw new Error(`T1: record ${id} of the changelog was acked at ${offset} and is no row`);
    }
    for (const [offset, id] of rows)
      if (this.#sent[id]?.state === 'refused')
        throw new Error(
          `T7: a row at ${offset} of record ${id} of the changelog, which was refused`,
        );
  }

  async #read(offset: number, found: Map<number, number>): Promise<number> {
    const result = await this.#world.node.log.read({
      partitions: [{ partitionId: this.partitionId, offset, maxBytes: 5_000 }],
      maxBytes: 5_000,
      isolation: 'read_committed',
      purpose: 'consumer',
    });
    const cursor = new RecordCursor();
    let next = offset;
    for (const { bytes, baseOffset, patched } of result.partitions[0]!.runs) {
      let base = baseOffset;
      for (let at = 0, end: number; (end = batchEnd(bytes, at)) !== -1; at = end) {
        if (patched) base = headerOffset(bytes, at);
        cursor.open(bytes, at, { baseOffset: base });
        while (cursor.next()) this.#see(cursor, found);
        base += lastOffsetDelta(bytes, at) + 1;
        next = Math.max(next, base);
      }
    }
    result.release();
    return next;
  }

  #see(cursor: RecordCursor, found: Map<number, number>): void {
    const { offset, bytes, keyStart, keyLength, valueStart, valueLength } = cursor;
    const key = Buffer.from(bytes.slice(keyStart, keyStart + keyLength)).toString();
    const id = Number(Buffer.from(bytes.slice(valueStart, valueStart + valueLength)).toString());
    if (this.#sent[id]?.key !== key)
      throw new Error(`L1: the changelog has record ${id} under key ${key} at ${offset}`);
    const before = this.#seen.get(offset);
    if (before !== undefined && before !== id)
      throw new Error(`L1: offset ${offset} of the changelog was record ${before} and is ${id}`);
    this.#seen.set(offset, id);
    if (found.has(id) && found.get(id) !== offset)
      throw new Error(`L2: record ${id} of the changelog is at ${found.get(id)} and ${offset}`);
    found.set(id, offset);
  }
}

function itemOf(partitionId: number, bytes: Uint8Array): Omit<AppendItem, 'recordCount'> {
  return {
    partitionId,
    bytes,
    lastOffsetDelta: lastOffsetDelta(bytes),
    producerId: -1,
    producerEpoch: -1,
    baseSequence: -1,
    maxTimestamp: -1,
    logAppendTimeMs: -1,
  };
}

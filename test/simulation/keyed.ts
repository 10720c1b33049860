// A topic whose table has one row for each key, under simulation: records put and deleted by anybody, in any partition, while
// its table is committed, compacted, expired and swept, and the node dies. In the end the table equals a replay of the log,
// ordered by commits (K1), read by a reader that isn't ours.

import type { FileReader } from '../../src/formats/iceberg/index.ts';
import type { TableMetadata } from '../../src/formats/iceberg/types.ts';
import { batchEnd, lastOffsetDelta } from '../../src/protocol/record-batch.ts';
import { buildBatch } from '../../src/protocol/record-builder.ts';
import { RecordCursor } from '../../src/protocol/record-cursor.ts';
import { commitAt } from '../../src/table-topic/upsert/commit-steps.ts';
import { liveRows } from '../../src/table-topic/upsert/testing/live-rows.ts';
import type { Surroundings } from './surroundings.ts';
import { TABLE_CONFIG } from './table-side.ts';

export const KEYED = 'keyed';

const KEYS = 9;
const MAX_FAILURES = 3;

const CONFIG = {
  ...TABLE_CONFIG,
  'table.topic.convert.value.type': 'json',
  'table.topic.convert.key.type': 'json',
  'table.topic.upsert.enable': 'true',
  'table.topic.id.columns': '[id]',
  'table.topic.commit.interval.ms': '900',
  'table.topic.compact.enable': 'true',
  'table.topic.compact.interval.ms': '3000',
  'table.topic.compact.min.input.files': '2',
  'table.topic.expire.snapshot.interval.ms': '5000',
  'table.topic.expire.snapshot.older.than.hours': '0',
  // Enough for the sweep to see what became of requests without an answer: else their files stay for a day.
  'table.topic.expire.snapshot.retain.last': '20',
};

interface Change {
  readonly key: string;
  /** Undefined: deleted. */
  readonly row: string | undefined;
  readonly order: readonly [commit: number, partition: number, offset: number];
}

export class Keyed {
  readonly #world: Surroundings;
  #partitions: readonly number[] = [];
  #next = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  /** @param version of the table's format: vectors, or position deletes. */
  async create(version: 2 | 3): Promise<void> {
    const { node, ids, clock } = this.#world;
    const topic = await node.directory.create({
      topicId: ids.uuid(),
      name: KEYED,
      partitionCount: 4,
      config: { ...CONFIG, 'table.topic.format.version': String(version) },
      nowMs: clock.now(),
    });
    // Retention by size is for partitions with even ids: the log of the others stays whole.
    this.#partitions = topic.partitions.filter((id) => id % 2 === 1);
  }

  /** A batch of some changes; what becomes of it, the log tells in the end. */
  act(): void {
    const { node, prng, clock } = this.#world;
    const partitionId = this.#partitions[prng.int(this.#partitions.length)];
    if (partitionId === undefined || node.directory.byPartition(partitionId) === undefined) return;
    const records = Array.from({ length: 1 + prng.int(5) }, () => {
      const id = prng.int(KEYS);
      this.#next += 1;
      const value = prng.next() < 0.25 ? null : JSON.stringify({ id, n: this.#next });
      return { key: JSON.stringify({ id }), value, timestamp: clock.now() };
    });
    const bytes = buildBatch(records);
    const item = {
      partitionId,
      bytes,
      recordCount: records.length,
      lastOffsetDelta: lastOffsetDelta(bytes),
      producerId: -1,
      producerEpoch: -1,
      baseSequence: -1,
      maxTimestamp: -1,
      logAppendTimeMs: -1,
    };
    void node.log.append([item]).catch(() => {});
  }

  /** @throws Error naming the broken promise. */
  async audit(io: FileReader, metadata: TableMetadata | undefined): Promise<number> {
    const changes = await this.#replay();
    if (changes.length === 0) return 0;
    const wanted = new Map<string, string>();
    for (const { key, row } of changes)
      if (row === undefined) wanted.delete(key);
      else wanted.set(key, row);
    const rows = metadata === undefined ? [] : await liveRows(io, metadata);
    const found = rows.map((row) => `${row['id']}=${row['n']}`).toSorted();
    const expected = [...wanted.values()].toSorted();
    if (found.join() !== expected.join())
      throw new Error(
        `K1: the keyed table has ${found.join(' ')}, the log says ${expected.join(' ')}`,
      );
    return found.length;
  }

  async #replay(): Promise<Change[]> {
    const { node } = this.#world;
    const changes: Change[] = [];
    for (const [index, partitionId] of this.#partitions.entries()) {
      const marks = node.log.watermarks(partitionId);
      if (marks === undefined) continue;
      const end = marks.lastStableOffset;
      const steps = await node.log.commitSteps(partitionId, 0, end);
      for (let offset = 0, failures = 0; offset < end; ) {
        const next = await this.#world.drive(
          this.#read(partitionId, offset, (change, at) => {
            changes.push({ ...change, order: [commitAt(steps, at), index, at] });
          }),
        );
        failures = next <= offset ? failures + 1 : 0;
        if (failures === MAX_FAILURES)
          throw new Error(`L4: ${KEYED} does not read on at ${offset} of ${end}`);
        offset = next;
      }
    }
    return changes.sort(
      (a, b) => a.order[0] - b.order[0] || a.order[1] - b.order[1] || a.order[2] - b.order[2],
    );
  }

  async #read(
    partitionId: number,
    offset: number,
    take: (change: Omit<Change, 'order'>, at: number) => void,
  ): Promise<number> {
    const result = await this.#world.node.log.read({
      partitions: [{ partitionId, offset, maxBytes: 20_000 }],
      maxBytes: 20_000,
      isolation: 'read_committed',
      purpose: 'consumer',
    });
    const cursor = new RecordCursor();
    let next = offset;
    for (const { bytes, baseOffset } of result.partitions[0]!.runs) {
      let base = baseOffset;
      for (let at = 0, end: number; (end = batchEnd(bytes, at)) !== -1; at = end) {
        cursor.open(bytes, at, { baseOffset: base });
        while (cursor.next()) if (cursor.offset >= offset) take(changeOf(cursor), cursor.offset);
        base += lastOffsetDelta(bytes, at) + 1;
        next = Math.max(next, base);
      }
    }
    result.release();
    return next;
  }
}

function changeOf(cursor: RecordCursor): Omit<Change, 'order'> {
  const { bytes, keyStart, keyLength, valueStart, valueLength } = cursor;
  const text = (start: number, length: number) =>
    Buffer.from(bytes.slice(start, start + length)).toString();
  const key = text(keyStart, keyLength);
  if (valueLength < 0) return { key, row: undefined };
  const { id, n } = JSON.parse(text(valueStart, valueLength)) as { id: number; n: number };
  return { key, row: `${id}=${n}` };
}

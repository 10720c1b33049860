// Where an operator wants a table to go back to: offsets by partition, a time, or all that the log has.
// Not for: going there (rewind.ts).
import { FloeError } from '../../base/error.ts';
import { parseTimestamp } from '../../formats/iceberg/value.ts';
import { QUARANTINE_CONFIG, quarantinedPartitions } from '../../metadata/quarantine.ts';
import type { Topic } from '../../metadata/topics.ts';
import type { Log } from '../../storage/log/log.ts';
import type { Offsets } from '../watermark.ts';

export type RewindTo =
  /** Everything the log still has: a rebuild. */
  | { readonly kind: 'start' }
  /** By partition; others stay. */
  | { readonly kind: 'offsets'; readonly offsets: Offsets }
  /** The first record of each partition at or after it. */
  | { readonly kind: 'time'; readonly timestampMs: number };

/**
 * Quarantined partitions stay where they are: their rows could not be made again now.
 * @throws FloeError `invalid` for a partition or offset that the topic hasn't, or that is quarantined.
 */
export async function rewindOffsets(log: Log, topic: Topic, to: RewindTo): Promise<Offsets> {
  const found = new Map<number, number>();
  const quarantined = quarantinedPartitions(topic);
  if (to.kind === 'offsets') check(log, topic, to.offsets);
  for (const [partition, partitionId] of topic.partitions.entries()) {
    const marks = log.watermarks(partitionId);
    if (marks === undefined || quarantined.has(partition)) continue;
    let offset: number | undefined = marks.logStartOffset;
    if (to.kind === 'offsets') offset = to.offsets.get(partition);
    if (to.kind === 'time') {
      const at = await log.offsetForTime(partitionId, to.timestampMs, 'read_committed');
      offset = at?.offset;
    }
    if (offset !== undefined) found.set(partition, Math.max(offset, marks.logStartOffset));
  }
  return found;
}

function check(log: Log, topic: Topic, offsets: Offsets): void {
  const quarantined = quarantinedPartitions(topic);
  for (const [partition, offset] of offsets) {
    if (quarantined.has(partition)) {
      throw new FloeError(
        'invalid',
        `partition ${partition} is quarantined, so its rows can't be made again: take it off ${QUARANTINE_CONFIG} of topic "${topic.name}" first`,
      );
    }
    const partitionId = topic.partitions[partition];
    const marks = partitionId === undefined ? undefined : log.watermarks(partitionId);
    if (marks === undefined) {
      throw new FloeError('invalid', `topic "${topic.name}" has no partition ${partition}`);
    }
    if (Number.isInteger(offset) && offset >= 0 && offset <= marks.lastStableOffset) continue;
    throw new FloeError(
      'invalid',
      `offset ${offset} of partition ${partition} is not within 0 and ${marks.lastStableOffset}, the last stable offset`,
    );
  }
}

/**
 * What a request's body asks for: `{"offsets": {"0": 5}}` or `{"timestamp": ms or ISO 8601}`.
 * @throws FloeError `invalid` for anything else: a word must not be lost.
 */
export function parseRewindTo(body: unknown): RewindTo {
  const asked = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const [entry] = asked;
  if (asked.length === 1 && entry !== undefined) {
    const [name, value] = entry;
    if (name === 'offsets') return { kind: 'offsets', offsets: parseOffsets(value) };
    if (name === 'timestamp') return { kind: 'time', timestampMs: parseTime(value) };
  }
  throw new FloeError(
    'invalid',
    `the body ${JSON.stringify(body)} is not {"offsets": {"<partition>": <offset>}} or {"timestamp": <ISO 8601 or milliseconds>}`,
  );
}

function parseOffsets(value: unknown): Offsets {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  const offsets = new Map<number, number>();
  for (const [partition, offset] of entries) {
    if (!/^\d+$/.test(partition) || typeof offset !== 'number') {
      throw new FloeError('invalid', `"${partition}": ${JSON.stringify(offset)} is no offset`);
    }
    offsets.set(Number(partition), offset);
  }
  if (offsets.size > 0) return offsets;
  throw new FloeError('invalid', 'offsets name no partition: {"offsets": {"0": 5}}');
}

function parseTime(value: unknown): number {
  const text = String(value);
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const micros = parseTimestamp(text, 6);
  if (micros !== undefined) return Number(micros / 1_000n);
  throw new FloeError('invalid', `timestamp "${text}" is neither ISO 8601 nor milliseconds`);
}

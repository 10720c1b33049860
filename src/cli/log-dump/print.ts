// Lines of a dump for people (tables, some hundred rows at a time, so that any object can be printed) and for programs
// (one JSON object a line). Keys and values may be anything: text is told from bytes, and what is long is cut. Pure.
import { dateAt } from '../../base/clock.ts';
import { textTable } from '../text-table.ts';
import type { BatchLine, DumpLine, MarkerLine, ObjectLine, OtherLine, RecordLine } from './dump.ts';

const ROWS_AT_ONCE = 500;

export interface PrintOptions {
  readonly format: 'table' | 'json';
  /** Of keys, values and headers so much is printed. */
  readonly maxBytes: number;
}

/** The text of a dump, piece by piece. */
export async function* printed(
  lines: AsyncIterable<DumpLine>,
  { format, maxBytes }: PrintOptions,
): AsyncGenerator<string> {
  if (format === 'json') {
    for await (const line of lines) yield `${JSON.stringify(jsonOf(line, maxBytes))}\n`;
    return;
  }
  let rows: (readonly unknown[])[] = [];
  const flush = () => {
    const text = rows.length === 0 ? '' : textTable(COLUMNS, rows);
    rows = [];
    return text;
  };
  for await (const line of lines) {
    if (line.kind === 'batch' || line.kind === 'marker') {
      rows.push(line.kind === 'batch' ? batchRow(line) : markerRow(line));
      if (rows.length >= ROWS_AT_ONCE) yield flush();
      continue;
    }
    yield flush();
    yield plainText(line, maxBytes);
  }
  yield flush();
}

const COLUMNS = [
  'partition',
  'bytes',
  'offsets',
  'records',
  'max timestamp',
  'producer',
  'flags',
  'crc',
];

function batchRow(line: BatchLine): readonly unknown[] {
  const { position, length, baseOffset, lastOffset, producerId, producerEpoch } = line;
  const offsets = baseOffset === null ? noOffset(line) : `${baseOffset}–${lastOffset}`;
  const producer = producerId < 0 ? '' : `${producerId}/${producerEpoch}/${line.baseSequence}`;
  const flags = [
    line.transactional ? 'transactional' : '',
    line.control ? 'control' : '',
    line.compression === 'none' ? '' : line.compression,
  ].filter((flag) => flag !== '');
  return [
    partitionOf(line),
    `${position}–${position + length - 1}`,
    offsets,
    line.records,
    timeOf(line.maxTimestamp),
    producer,
    flags.join(' '),
    line.crc === 'ok' ? 'ok' : 'WRONG',
  ];
}

/** Without offset: it was refused or there already, or no index is known. */
const noOffset = ({ indexed }: BatchLine): string => (indexed === false ? 'none' : '?');

function markerRow(line: MarkerLine): readonly unknown[] {
  const { offset, committed, producerId, producerEpoch, timestampMs } = line;
  return [
    partitionOf(line),
    '',
    `${offset}`,
    null,
    timeOf(timestampMs),
    `${producerId}/${producerEpoch}`,
    committed ? 'commit marker' : 'abort marker',
    '',
  ];
}

const partitionOf = ({ partitionId, topic, partition }: BatchLine | MarkerLine): string =>
  topic === null ? `id ${partitionId}` : `${topic} ${partition} (id ${partitionId})`;

const timeOf = (ms: number): string => (isTime(ms) ? dateAt(ms).toISOString() : `${ms}`);

/** What a Date can say; producers may write anything. */
const isTime = (ms: number): boolean => ms >= 0 && ms <= 8.64e15;

function plainText(line: ObjectLine | RecordLine | OtherLine, maxBytes: number): string {
  switch (line.kind) {
    case 'object': {
      const generation = line.generation === null ? '' : `, generation ${line.generation}`;
      const state = line.state === null ? '' : `, ${line.state}`;
      return `${line.object}: ${line.bytes} bytes${generation}${state}; ${line.note}\n`;
    }
    case 'record': {
      const { key, value, timestamp, headers } = line.record;
      const named = headers.map(
        ([name, content]) => ` ${quoted(name, maxBytes)}=${shown(content, maxBytes)}`,
      );
      const parts = `key ${shown(key, maxBytes)}, value ${shown(value, maxBytes)}`;
      return `  ${line.offset ?? '?'}  ${timeOf(timestamp)}  ${parts}${named.length === 0 ? '' : `, headers${named.join('')}`}\n`;
    }
    default:
      return `${line.kind} at ${line.position}, ${line.bytes} bytes: ${line.text}\n`;
  }
}

const quoted = (text: string, maxBytes: number): string => shown(Buffer.from(text), maxBytes);

/** `null`, text in quotes with controls escaped, or hexadecimal digits behind `0x`; `… (n bytes)` where it is cut. */
function shown(bytes: Buffer | null, maxBytes: number): string {
  if (bytes === null) return 'null';
  const { text, head } = cut(bytes, maxBytes);
  const more = head.length < bytes.length ? `… (${bytes.length} bytes)` : '';
  return text === undefined ? `0x${head.toString('hex')}${more}` : `${escaped(text)}${more}`;
}

/** A terminal obeys what a value says: every control character is escaped. */
const escaped = (text: string): string =>
  JSON.stringify(text).replaceAll(
    /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** The first bytes, as text if they are any. A character that the cut divides is left out. */
function cut(
  bytes: Buffer,
  maxBytes: number,
): { readonly text: string | undefined; readonly head: Buffer } {
  let head = bytes.subarray(0, maxBytes);
  if (head.length < bytes.length) {
    let end = head.length;
    while (end > 0 && head.length - end < 3 && (bytes[end]! & 0xc0) === 0x80) end -= 1;
    if (isText(head.subarray(0, end))) head = head.subarray(0, end);
  }
  return { text: isText(head) ? head.toString('utf8') : undefined, head };
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function isText(bytes: Uint8Array): boolean {
  try {
    // NUL is no text's.
    return !decoder.decode(bytes).includes('\u0000');
  } catch {
    return false;
  }
}

function jsonOf(line: DumpLine, maxBytes: number): unknown {
  if (line.kind !== 'record') return line;
  const { key, value, headers, timestamp } = line.record;
  const plain = (bytes: Buffer | null) => jsonBytes(bytes, maxBytes);
  return {
    kind: 'record',
    offset: line.offset,
    timestamp,
    key: plain(key),
    value: plain(value),
    headers: headers.map(([name, content]) => ({ name, value: plain(content) })),
  };
}

/** `bytes` is how many there are; `text` or `base64` may hold only the first ones. */
function jsonBytes(bytes: Buffer | null, maxBytes: number): unknown {
  if (bytes === null) return null;
  const { text, head } = cut(bytes, maxBytes);
  return text === undefined
    ? { bytes: bytes.length, base64: head.toString('base64') }
    : { bytes: bytes.length, text };
}

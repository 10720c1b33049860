// Debezium's envelopes in Protobuf, as Connect's converter writes them: messages before, after and source around an op and
// its times. Parts are looked up where they stand, then the image is decoded by the decoder of all Protobuf messages: no
// object per record. Type names of Connect are not in such schemas: a date is the number it is written as, what the
// converter knows as a timestamp is one.
// Not for: envelopes in Avro and JSON (avro-envelope.ts, json-events.ts).
import { FloeError } from '../../base/error.ts';
import type { BytesColumn } from '../../formats/arrow/byte-columns.ts';
import type { ProposedStruct } from '../../formats/arrow/proposed-schema.ts';
import { RowFailure } from '../../formats/arrow/row-failure.ts';
import type { Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { DELIMITED, ProtoCursor, VARINT } from '../../formats/protobuf/cursor.ts';
import { compileProtobufDecoder, type ProtobufDecoder } from '../../formats/protobuf/decoder.ts';
import type { FindMessage } from '../../formats/protobuf/json-text.ts';
import type { ProtoField, ProtoMessage } from '../../formats/protobuf/schema.ts';
import {
  type ProtoTypeOptions,
  protobufToProposed,
  protobufToType,
} from '../../formats/protobuf/to-iceberg.ts';
import { changeKindOf } from '../change.ts';
import type { RowDecoder } from '../sources/source.ts';
import { checkImage, type AvroEnvelopeTarget as EnvelopeTarget } from './avro-envelope.ts';
import { CDC_PATHS, cdcFields, notAnEnvelope, otherEvent } from './envelope.ts';
import { holdsPlaceholder, noteUnavailable } from './unavailable.ts';

/** An envelope's message, taken apart. */
export interface ProtobufEnvelope {
  /** One row of the database's table. */
  readonly image: ProtoMessage;
  readonly source: ProtoMessage | undefined;
  /** Numbers of the parts; 0 for what the message hasn't. */
  readonly numbers: Readonly<Record<(typeof PARTS)[number], number>>;
}

const PARTS = ['before', 'after', 'source', 'op', 'ts_ms', 'ts_us'] as const;

/** @throws FloeError `invalid`; with `details.reason` `no_row` for what Debezium sends beside changes. */
export function protobufEnvelope(message: ProtoMessage): ProtobufEnvelope {
  const what = otherEvent(message.name);
  if (what !== undefined) {
    const details = { reason: 'no_row' };
    throw new FloeError('invalid', `${what}, no change of a row`, { details });
  }
  const field = (name: string) => message.fields.find((one) => one.name === name);
  const [before, after, op, source] = ['before', 'after', 'op', 'source'].map(field);
  if (op === undefined || after === undefined) throw notAnEnvelope('it lacks "op" or "after"');
  if (op.type.kind !== 'scalar' || op.type.scalar !== 'string')
    throw notAnEnvelope('"op" is no string');
  const image = messageOf(after);
  if (image === undefined) throw notAnEnvelope('"after" is no message');
  // The converter may write the one type twice, under two names.
  if (before !== undefined && !isLike(messageOf(before), image))
    throw notAnEnvelope('"before" and "after" are of two types');
  return {
    image,
    source: source === undefined ? undefined : messageOf(source),
    numbers: Object.fromEntries(
      PARTS.map((name) => [name, field(name)?.number ?? 0]),
    ) as ProtobufEnvelope['numbers'],
  };
}

function messageOf({ type, cardinality }: ProtoField): ProtoMessage | undefined {
  const single = cardinality !== 'repeated' && cardinality !== 'map';
  return single && type.kind === 'message' ? type : undefined;
}

/** Fields of the same numbers, names and types: what one means, the other does. */
function isLike(a: ProtoMessage | undefined, b: ProtoMessage, depth = 0): boolean {
  if (a === undefined || a === b || depth > 8) return a !== undefined;
  return (
    a.fields.length === b.fields.length &&
    a.fields.every((field, n) => {
      const other = b.fields[n]!;
      const same =
        field.number === other.number &&
        field.name === other.name &&
        field.cardinality === other.cardinality &&
        field.type.kind === other.type.kind;
      if (!same) return false;
      if (field.type.kind === 'message')
        return isLike(field.type, other.type as ProtoMessage, depth + 1);
      return (
        field.type.kind !== 'scalar' ||
        field.type.scalar === (other.type as typeof field.type).scalar
      );
    })
  );
}

/** The columns of an envelope: the image's, then `_cdc_*`. @throws FloeError `invalid`. */
export function proposedProtobufEnvelope(
  { image, source }: ProtobufEnvelope,
  options: ProtoTypeOptions,
): ProposedStruct {
  const { fields } = protobufToProposed(image, options);
  const block =
    source === undefined ? undefined : protobufToType(source, CDC_PATHS.source, options);
  return { type: 'struct', fields: [...fields, ...cdcFields(block)] };
}

/** @throws FloeError `invalid` when a bound column can't take what the message writes. */
export function compileProtobufEnvelope(
  envelope: ProtobufEnvelope,
  find: FindMessage,
  target: EnvelopeTarget,
): RowDecoder {
  const run = new EnvelopeRun(envelope, find, target);
  const { columns } = target;
  return {
    decode(bytes, start, end) {
      try {
        const reason = run.decode(bytes, start, end);
        if (reason !== undefined) columns.rollback();
        return reason;
      } catch (failure) {
        if (!(failure instanceof RowFailure)) throw failure;
        columns.rollback();
        return failure.reason;
      }
    },
  };
}

interface Span {
  start: number;
  end: number;
}

/** One envelope being read. */
class EnvelopeRun {
  readonly #target: EnvelopeTarget;
  readonly #numbers: ProtobufEnvelope['numbers'];
  readonly #cursor = new ProtoCursor();
  readonly #image: ProtobufDecoder;
  readonly #source: ProtobufDecoder | undefined;
  readonly #op: BytesColumn | undefined;
  readonly #ts: Int64Column | undefined;
  readonly #watched;
  readonly #spans: Record<'before' | 'after' | 'source' | 'op', Span> = {
    before: { start: -1, end: -1 },
    after: { start: -1, end: -1 },
    source: { start: -1, end: -1 },
    op: { start: -1, end: -1 },
  };
  /** Microseconds; 0, which a message without it says too, for none. */
  #micros = 0n;

  constructor(
    { image, source, numbers }: ProtobufEnvelope,
    find: FindMessage,
    target: EnvelopeTarget,
  ) {
    const { columns, bindings } = target;
    const at = (path: string) => {
      const id = bindings.get(path);
      return id === undefined ? undefined : columns.byId(id);
    };
    this.#target = target;
    this.#numbers = numbers;
    this.#image = compileProtobufDecoder({ message: image, find }, columns, bindings);
    if (source !== undefined) {
      const block = { message: source, find, path: CDC_PATHS.source };
      this.#source = compileProtobufDecoder(block, columns, bindings);
    }
    this.#op = at(CDC_PATHS.op) as BytesColumn | undefined;
    this.#ts = at(CDC_PATHS.ts) as Int64Column | undefined;
    const own = new Set(
      [...bindings].filter(([path]) => !path.startsWith(':')).map(([, id]) => id),
    );
    this.#watched = columns.schema.fields.flatMap(({ id }) => {
      const column = columns.byId(id);
      return own.has(id) && holdsPlaceholder(column) ? [{ id, column }] : [];
    });
  }

  /** The reason why it is none. */
  decode(bytes: Uint8Array, start: number, end: number): string | undefined {
    const { change, columns } = this.#target;
    change.reset();
    this.#look(bytes, start, end);
    const { before, after, source, op } = this.#spans;
    if (op.start < 0) return 'an envelope without op';
    const kind = changeKindOf(bytes, op.start, op.end);
    if (kind === undefined || op.end - op.start !== 1) return 'an operation that Debezium has not';
    change.kind = kind;
    change.hasImage = after.start >= 0 || before.start >= 0;
    checkImage(change, after.start >= 0);
    const image = after.start >= 0 ? after : before;
    if (image.start >= 0) {
      const reason = this.#image.decode(bytes, image.start, image.end);
      if (reason !== undefined) return reason;
      for (const { id, column } of this.#watched)
        if (column.length > columns.rowCount) noteUnavailable(column, id, change);
    }
    if (source.start >= 0) {
      const reason = this.#source?.decode(bytes, source.start, source.end);
      if (reason !== undefined) return reason;
    }
    this.#op?.padTo(columns.rowCount);
    this.#op?.append(bytes, op.start, op.end);
    if (this.#micros !== 0n) {
      this.#ts?.padTo(columns.rowCount);
      this.#ts?.appendBigInt(this.#micros);
    }
    return undefined;
  }

  /** Where the parts are; of several the last counts. */
  #look(bytes: Uint8Array, start: number, end: number): void {
    const cursor = this.#cursor;
    const spans = this.#spans;
    const numbers = this.#numbers;
    for (const span of Object.values(spans)) span.start = -1;
    let millis = 0n;
    let micros = 0n;
    cursor.reset(bytes, start, end);
    for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
      const part = PARTS.find((name) => numbers[name] === tag >>> 3);
      if (part === undefined) cursor.skip(tag);
      else if (part === 'ts_ms' || part === 'ts_us') {
        if ((tag & 7) !== VARINT) RowFailure.raise(`wire type ${tag & 7} of ${part}`);
        cursor.readVarint();
        if (part === 'ts_ms') millis = cursor.bigint();
        else micros = cursor.bigint();
      } else {
        if ((tag & 7) !== DELIMITED) RowFailure.raise(`wire type ${tag & 7} of ${part}`);
        const length = cursor.readLength();
        spans[part].start = cursor.take(length);
        spans[part].end = cursor.pos;
      }
    }
    this.#micros = micros === 0n ? millis * 1_000n : micros;
  }
}

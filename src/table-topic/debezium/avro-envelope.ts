// Decodes Avro envelopes straight into columns: no object per record. The parts come in the order before, after,
// source, op: an `after` that is there is decoded where it stands, a `before` is passed over and gone back to only when
// there is no `after` (a delete), so every byte of an image is decoded once at most.
import type { BytesColumn } from '../../formats/arrow/byte-columns.ts';
import type { Bindings } from '../../formats/arrow/proposed-schema.ts';
import { RowFailure } from '../../formats/arrow/row-failure.ts';
import type { Int64Column } from '../../formats/arrow/scalar-columns.ts';
import type { TableColumns } from '../../formats/arrow/table-columns.ts';
import type { AvroCursor, Step } from '../../formats/avro/cursor.ts';
import { compileAvroParts, rowDecoder } from '../../formats/avro/decoder.ts';
import type { AvroField, AvroSchema } from '../../formats/avro/schema.ts';
import { skipStep } from '../../formats/avro/skip.ts';
import { type Child, unroll } from '../../formats/avro/unroll.ts';
import { CHANGE, changeKindOf, type RowChange } from '../change.ts';
import type { RowDecoder } from '../sources/source.ts';
import { CDC_PATHS, type Envelope } from './envelope.ts';
import { holdsPlaceholder, noteUnavailable } from './unavailable.ts';

export interface AvroEnvelopeTarget {
  readonly columns: TableColumns;
  readonly bindings: Bindings;
  /** Says of each decoded record what it does. */
  readonly change: RowChange;
}

/** @throws FloeError `invalid` when a bound column can't take what the schema writes. */
export function compileAvroEnvelope(envelope: Envelope, target: AvroEnvelopeTarget): RowDecoder {
  const { columns, change } = target;
  const run = new EnvelopeRun(envelope, target);
  const steps = envelope.fields.map((field) => run.step(field));
  return rowDecoder((cursor) => {
    change.reset();
    run.begin();
    for (let i = 0; i < steps.length; i++) steps[i]!(cursor);
    run.end(cursor);
  }, columns);
}

const NONE = -1;

/** One envelope being read. */
class EnvelopeRun {
  readonly #change: RowChange;
  readonly #columns: TableColumns;
  readonly #image: Step;
  readonly #op: BytesColumn | undefined;
  readonly #ts: Int64Column | undefined;
  readonly #source: Child;
  /** Where the image starts that was passed over. */
  #beforeAt = NONE;
  #after = false;
  #named = false;
  /** Microseconds as 64-bit halves. */
  #hasTime = false;
  #low = 0;
  #high = 0;

  constructor({ image, source }: Envelope, { columns, bindings, change }: AvroEnvelopeTarget) {
    const parts = compileAvroParts(columns, bindings);
    const find = (path: string) => {
      const id = bindings.get(path);
      return id === undefined ? undefined : columns.byId(id);
    };
    this.#change = change;
    this.#columns = columns;
    this.#op = find(CDC_PATHS.op) as BytesColumn | undefined;
    this.#ts = find(CDC_PATHS.ts) as Int64Column | undefined;
    this.#source = parts.child(source ?? { kind: 'null' }, CDC_PATHS.source);
    const fields = parts.fields(image).map((child) => watched(child, columns, change));
    this.#image = unroll(fields, columns);
  }

  step({ name, type }: AvroField): Step {
    switch (name) {
      case 'before':
        return this.#before(type);
      case 'after':
        return this.#decodeAfter(type);
      case 'source':
        return unroll([this.#source], this.#columns);
      case 'op':
        return (cursor) => this.#readOp(cursor);
      case 'ts_ms':
        return this.#time(type, true);
      case 'ts_us':
        return this.#time(type, false);
      default:
        return skipStep(type);
    }
  }

  begin(): void {
    this.#beforeAt = NONE;
    this.#after = false;
    this.#named = false;
    this.#hasTime = false;
  }

  /** Goes back for a delete's image, and holds what came against the operation. */
  end(cursor: AvroCursor): void {
    const change = this.#change;
    if (!this.#named) RowFailure.raise('an envelope without op');
    if (!this.#after && this.#beforeAt !== NONE) {
      const { pos } = cursor;
      cursor.pos = this.#beforeAt;
      this.#image(cursor);
      cursor.pos = pos;
    }
    change.hasImage = this.#after || this.#beforeAt !== NONE;
    checkImage(change, this.#after);
    if (this.#ts === undefined || !this.#hasTime) return;
    this.#ts.padTo(this.#columns.rowCount);
    this.#ts.appendHalves(this.#low, this.#high);
  }

  #before(type: AvroSchema): Step {
    const { isNull, body } = optional(type);
    const skip = skipStep(body);
    return (cursor) => {
      if (isNull(cursor)) return;
      this.#beforeAt = cursor.pos;
      skip(cursor);
    };
  }

  #decodeAfter(type: AvroSchema): Step {
    const { isNull } = optional(type);
    return (cursor) => {
      if (isNull(cursor)) return;
      this.#after = true;
      this.#image(cursor);
    };
  }

  #readOp(cursor: AvroCursor): void {
    const length = cursor.readLength();
    const start = cursor.take(length);
    const kind = changeKindOf(cursor.bytes, start, start + length);
    if (kind === undefined || length !== 1) RowFailure.raise('an operation that Debezium has not');
    this.#change.kind = kind;
    this.#named = true;
    const column = this.#op;
    if (column === undefined) return;
    column.padTo(this.#columns.rowCount);
    column.append(cursor.bytes, start, start + length);
  }

  /** The finer of the two times counts, which follows. */
  #time(type: AvroSchema, millis: boolean): Step {
    const { isNull, body } = optional(type);
    if (body.kind !== 'long') return skipStep(type);
    return (cursor) => {
      if (isNull(cursor)) return;
      if (millis) {
        const micros = cursor.readSafeLong() * 1_000;
        if (!Number.isSafeInteger(micros)) RowFailure.raise('ts_ms out of range');
        this.#high = Math.floor(micros / 4_294_967_296);
        this.#low = micros - this.#high * 4_294_967_296;
      } else {
        cursor.readLong();
        this.#low = cursor.low;
        this.#high = cursor.high;
      }
      this.#hasTime = true;
    };
  }
}

/** @throws RowFailure when the images aren't those of the operation. */
export function checkImage({ kind, hasImage }: RowChange, after: boolean): void {
  if (kind === CHANGE.insert || kind === CHANGE.update) {
    if (!after) RowFailure.raise('a create, read or update without "after"');
  } else if (kind === CHANGE.delete) {
    if (after) RowFailure.raise('a delete with "after"');
  } else if (hasImage) {
    RowFailure.raise('a truncate with an image');
  }
}

/** A type through its union with null: whether the value at the cursor is null (its branch is taken), and the rest. */
function optional(type: AvroSchema): {
  readonly isNull: (cursor: AvroCursor) => boolean;
  readonly body: AvroSchema;
} {
  if (type.kind !== 'union') return { isNull: () => false, body: type };
  const { branches } = type;
  const nullAt = branches.findIndex((branch) => branch.kind === 'null');
  return {
    isNull: (cursor) => {
      const index = cursor.readInt();
      if (index < 0 || index >= branches.length) RowFailure.raise(`union branch ${index}`);
      return index === nullAt;
    },
    body: branches.find((branch) => branch.kind !== 'null')!,
  };
}

/** The step of an image's field, which also notes a placeholder. */
function watched(child: Child, columns: TableColumns, change: RowChange): Child {
  const { column, step } = child;
  if (!holdsPlaceholder(column)) return child;
  const at = columns.columns.indexOf(column);
  const fieldId = columns.schema.fields[at]?.id;
  if (fieldId === undefined) return child;
  return {
    column,
    step: (cursor) => {
      step(cursor);
      noteUnavailable(column, fieldId, change);
    },
  };
}

// JSON events that carry their schema: each distinct schema text is parsed once, values go through Avro's bytes into the
// same decoder as registered Avro. Bytes of schemas are compared, not parsed, from the second record on.
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Bindings, ProposedStruct } from '../../formats/arrow/proposed-schema.ts';
import { RowFailure } from '../../formats/arrow/row-failure.ts';
import type { TableColumns } from '../../formats/arrow/table-columns.ts';
import type { JsonCursor } from '../../formats/json/cursor.ts';
import type { RowChange } from '../change.ts';
import type { RowDecoder, TypeOptions } from '../sources/source.ts';
import { compileAvroEnvelope } from './avro-envelope.ts';
import { AvroSink } from './avro-sink.ts';
import { parseConnectSchema } from './connect-schema.ts';
import { type Envelope, eventSchema, proposedEnvelope } from './envelope.ts';
import type { Span } from './json-event.ts';
import { compileTranscode, type Transcode } from './json-to-avro.ts';

/** Distinct schema texts kept; a topic has one per table version, so more is a producer gone astray. */
const MAX_SCHEMAS = 256;

/** A schema that came along with a value. */
export type SentSchema =
  | {
      readonly kind: 'envelope';
      readonly envelope: Envelope;
      readonly columns: ProposedStruct;
      readonly transcode: Transcode;
    }
  | { readonly kind: 'other'; readonly what: string }
  | { readonly kind: 'refused'; readonly error: string };

interface Known {
  readonly bytes: Buffer;
  readonly schema: SentSchema;
}

/** Schemas by their bytes, the last used first. */
export class SentSchemas {
  readonly #options: TypeOptions;
  readonly #known: Known[] = [];

  constructor(options: TypeOptions) {
    this.#options = options;
  }

  /** Moves past the schema at the cursor when it is the last one's bytes, which is cheaper than reading JSON. */
  skipKnown(cursor: JsonCursor): boolean {
    const last = this.#known[0];
    if (last === undefined) return false;
    const end = cursor.pos + last.bytes.length;
    if (end > cursor.end || !same(last.bytes, cursor.bytes, cursor.pos)) return false;
    cursor.pos = end;
    return true;
  }

  get(bytes: Uint8Array, { start, end }: Span): SentSchema {
    const at = this.#known.findIndex(
      (one) => one.bytes.length === end - start && same(one.bytes, bytes, start),
    );
    if (at === 0) return this.#known[0]!.schema;
    const found = at > 0 ? this.#known.splice(at, 1)[0]! : this.#parse(bytes, { start, end });
    this.#known.unshift(found);
    if (this.#known.length > MAX_SCHEMAS) this.#known.pop();
    return found.schema;
  }

  #parse(bytes: Uint8Array, { start, end }: Span): Known {
    const text = Buffer.from(bytes.subarray(start, end));
    return { bytes: text, schema: readSchema(text.toString(), this.#options) };
  }
}

const same = (known: Buffer, bytes: Uint8Array, at: number) =>
  known.compare(bytes, at, at + known.length) === 0;

function readSchema(text: string, options: TypeOptions): SentSchema {
  try {
    const schema = parseConnectSchema(JSON.parse(text));
    const event = eventSchema(schema);
    if (event.kind === 'other') return event;
    const { envelope } = event;
    const columns = proposedEnvelope(envelope, options);
    return { kind: 'envelope', envelope, columns, transcode: compileTranscode(schema) };
  } catch (caught) {
    const error = FloeError.from(caught);
    if (!isFloeError(error, 'invalid') && !(caught instanceof SyntaxError)) throw caught;
    return { kind: 'refused', error: error.message };
  }
}

/** A decoder of payloads into columns, once the table has bound them. */
export function compileSchemaEvents(
  sent: Extract<SentSchema, { kind: 'envelope' }>,
  target: {
    readonly columns: TableColumns;
    readonly bindings: Bindings;
    readonly change: RowChange;
  },
): (cursor: JsonCursor) => string | undefined {
  const decoder: RowDecoder = compileAvroEnvelope(sent.envelope, target);
  const sink = new AvroSink();
  return (cursor) => {
    sink.reset();
    const { pos } = cursor;
    try {
      sent.transcode(cursor, sink);
    } catch (failure) {
      if (!(failure instanceof RowFailure)) throw failure;
      target.columns.rollback();
      return `${failure.reason} at byte ${cursor.pos - pos} of the payload`;
    }
    return decoder.decode(sink.bytes, 0, sink.length);
  };
}

// Debezium's JSON events as sources of columns: with Connect's schema around them typed as that says, without it
// inferred. One topic may bring both. Not for: finding the parts (json-event.ts), either way of decoding
// (schema-events.ts, plain-events.ts).
import type { BytesColumn } from '../../formats/arrow/byte-columns.ts';
import { RowFailure } from '../../formats/arrow/row-failure.ts';
import type { Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { highestFieldId } from '../../formats/iceberg/schema.ts';
import { JsonCursor } from '../../formats/json/cursor.ts';
import { UNFIT } from '../../formats/json/decoder.ts';
import { changeKindOf } from '../change.ts';
import { ignoredPaths, selectColumns } from '../column-selection.ts';
import type { Converter, ConverterTarget } from '../converter.ts';
import { evolve } from '../evolve.ts';
import type { JobConfig } from '../job.ts';
import { newInference } from '../json-source.ts';
import { checkImage } from './avro-envelope.ts';
import { CDC_PATHS } from './envelope.ts';
import { EventMembers, otherEvent, type Span } from './json-event.ts';
import { PlainDecoder, PlainInference } from './plain-events.ts';
import { compileSchemaEvents, type SentSchema, SentSchemas } from './schema-events.ts';

/** What a record turned out to be. `none`: no row, `what` says why. */
type Form = 'schema' | 'plain' | 'none';

/** Reads a record's outer form; fields are of the last one read. */
export class EventReader {
  readonly cursor = new JsonCursor();
  readonly members = new EventMembers();
  readonly #sent: SentSchemas;
  schema: SentSchema | undefined;
  payload: Span = { start: 0, end: 0 };
  what = '';

  constructor(config: Pick<JobConfig, 'table.topic.types.time' | 'table.topic.types.nanos'>) {
    this.#sent = new SentSchemas({
      time: config['table.topic.types.time'],
      nanos: config['table.topic.types.nanos'],
    });
  }

  /** @throws RowFailure when it is no event of Debezium's. */
  read(bytes: Uint8Array, start: number, end: number): Form {
    const { cursor, members } = this;
    this.schema = undefined;
    cursor.reset(bytes, start, end);
    if (cursor.peek() === 0x6e) {
      cursor.literal();
      cursor.finish();
      return this.#none('a tombstone after a delete');
    }
    this.#readMembers();
    cursor.finish();
    if (!members.wrapped) return this.#plain();
    const payload = members.get('payload');
    if (payload === undefined) return this.#none('a tombstone after a delete');
    const schema = members.get('schema');
    if (schema !== undefined) {
      this.payload = payload;
      this.schema = this.#sent.get(bytes, schema);
      return this.schema.kind === 'other' ? this.#none(this.schema.what) : 'schema';
    }
    cursor.reset(bytes, payload.start, payload.end);
    this.#readMembers();
    return this.#plain();
  }

  #readMembers(): void {
    const { cursor } = this;
    this.members.read(cursor, (name) => {
      if (name === 'schema' && this.#sent.skipKnown(cursor)) return true;
      return cursor.skipValue();
    });
  }

  #plain(): Form {
    const { members } = this;
    const what = otherEvent(members);
    if (what !== undefined) return this.#none(what);
    if (members.get('op') === undefined) RowFailure.raise('no Debezium event: it has no "op"');
    return 'plain';
  }

  #none(what: string): 'none' {
    this.what = what;
    return 'none';
  }

  /** The image of a plain event: `after`, or what was before. */
  get image(): Span | undefined {
    return this.members.get('after') ?? this.members.get('before');
  }
}

/** What a table that doesn't exist yet would need for the events of a job. */
export class EventInference {
  readonly #reader: EventReader;
  readonly #plain: PlainInference;
  readonly #schemas = new Set<Extract<SentSchema, { kind: 'envelope' }>['columns']>();
  #plainSeen = false;

  constructor(config: JobConfig) {
    this.#reader = new EventReader(config);
    this.#plain = new PlainInference(() => newInference(config));
  }

  add(bytes: Uint8Array, start: number, end: number): void {
    const reader = this.#reader;
    try {
      const form = reader.read(bytes, start, end);
      if (form === 'schema' && reader.schema!.kind === 'envelope') {
        this.#schemas.add(reader.schema!.columns);
      }
      if (form !== 'plain') return;
      this.#plainSeen = true;
      this.#plain.add(bytes, reader.image, reader.members.get('source'));
    } catch (failure) {
      // It will be a dead letter, and has no say in the columns.
      if (!(failure instanceof RowFailure)) throw failure;
    }
  }

  needs() {
    // Schemas know the types. What bare events need beside them shows once the table is there.
    if (this.#schemas.size > 0) return { schemas: [...this.#schemas] };
    return this.#plainSeen ? { columns: this.#plain.proposed() } : {};
  }
}

/** Undefined when the event was decoded; false with the fault set otherwise. */
type Decode = (bytes: Uint8Array) => boolean;

export function compileJsonEvents(target: ConverterTarget): Converter {
  const { columns, config, fault, change } = target;
  const reader = new EventReader(config);
  const plain = compilePlain(target, reader);
  const compiled = new WeakMap<SentSchema, Decode>();
  const decodeSent: Decode = (bytes) => {
    const schema = reader.schema!;
    let decode = compiled.get(schema);
    if (decode === undefined) {
      decode = compileSent(target, reader, schema);
      compiled.set(schema, decode);
    }
    return decode(bytes);
  };
  return (bytes, start, length) => {
    change.reset();
    try {
      const form = reader.read(bytes, start, start + length);
      if (form === 'none') return fault.set('value', 'no_row', reader.what);
      return form === 'schema' ? decodeSent(bytes) : plain(bytes);
    } catch (failure) {
      if (!(failure instanceof RowFailure)) throw failure;
      columns.rollback();
      return fault.set('value', 'not_json', failure.reason);
    }
  };
}

const listsOf = (config: JobConfig) => ({
  include: config['table.topic.columns.include'],
  exclude: config['table.topic.columns.exclude'],
});

/** Events with a schema: bound by the same rules as the coordinator's, from the table as committed. */
function compileSent(target: ConverterTarget, reader: EventReader, sent: SentSchema): Decode {
  const { columns, table, config, fault, needs, change } = target;
  if (sent.kind !== 'envelope') {
    const error = sent.kind === 'refused' ? sent.error : sent.what;
    return () => fault.set('value', 'unsupported_schema', error);
  }
  // Names don't matter to a table that has the columns: renaming is the coordinator's.
  const selection = { ...listsOf(config), rename: [] };
  const evolution = evolve({
    schema: table.schema,
    lastColumnId: highestFieldId(table.schema),
    fields: table.fields,
    proposed: selectColumns(sent.columns, selection),
    newColumns: config['table.topic.evolution.incompatible'] === 'new_column',
    mayRename: false,
  });
  const [conflict] = evolution.conflicts;
  if (evolution.schema !== table.schema || evolution.fields !== table.fields) {
    return () => {
      if (!needs.final) needs.sentSchemas.add(sent.columns);
      return fault.set('value', 'incompatible_type', 'the schema it brings has no columns yet');
    };
  }
  if (conflict !== undefined && config['table.topic.evolution.incompatible'] !== 'new_column') {
    const error = `column "${conflict.column}" is ${conflict.columnType}, its schema says ${conflict.sourceType}`;
    return () => {
      // To suspend is the coordinator's to say.
      if (config['table.topic.evolution.incompatible'] === 'suspend' && !needs.final) {
        needs.sentSchemas.add(sent.columns);
      }
      return fault.set('value', 'incompatible_type', error);
    };
  }
  const { bindings } = evolution;
  const decode = compileSchemaEvents(sent, { columns, bindings, change });
  const { cursor } = reader;
  return (bytes) => {
    cursor.reset(bytes, reader.payload.start, reader.payload.end);
    const reason = decode(cursor);
    return reason === undefined || fault.set('value', 'undecodable', reason);
  };
}

function compilePlain(target: ConverterTarget, reader: EventReader): Decode {
  const { columns, table, config, fault, needs, change } = target;
  const decoder = new PlainDecoder({
    columns,
    ignores: ignoredPaths(listsOf(config)),
    bindings: table.bindings,
    change,
    maxColumns: config['table.topic.json.max.columns'],
  });
  const column = (path: string) => {
    const id = table.bindings.get(path);
    return id === undefined ? undefined : columns.byId(id);
  };
  const op = column(CDC_PATHS.op) as BytesColumn | undefined;
  const ts = column(CDC_PATHS.ts) as Int64Column | undefined;
  const { members, cursor } = reader;
  return (bytes) => {
    const span = members.get('op')!;
    const kind = changeKindOf(bytes, span.start + 1, span.end - 1);
    if (kind === undefined || span.end - span.start !== 3 || bytes[span.start] !== 0x22) {
      RowFailure.raise('an operation that Debezium has not');
    }
    const { image } = reader;
    change.kind = kind;
    change.hasImage = image !== undefined;
    checkImage(change, members.get('after') !== undefined);
    const source = members.get('source');
    const reason = decoder.decode(bytes, image, source);
    if (reason === UNFIT) {
      if (!needs.final) {
        needs.events ??= new PlainInference(() => newInference(config));
        needs.events.add(bytes, image, source);
        decoder.explain(needs.events);
      }
      return fault.set('value', 'incompatible_type', UNFIT);
    }
    if (reason !== undefined) return fault.set('value', 'not_json', reason);
    if (op !== undefined) {
      op.padTo(columns.rowCount);
      op.append(bytes, span.start + 1, span.end - 1);
    }
    if (ts !== undefined) appendTime(ts, columns.rowCount, { bytes, members, cursor });
    return true;
  };
}

/** Microseconds where the event has them, else milliseconds; null when neither is a whole number. */
function appendTime(
  column: Int64Column,
  row: number,
  event: {
    readonly bytes: Uint8Array;
    readonly members: EventMembers;
    readonly cursor: JsonCursor;
  },
): void {
  const { bytes, members, cursor } = event;
  const micros = members.get('ts_us');
  const span = micros ?? members.get('ts_ms');
  if (span === undefined) return;
  cursor.reset(bytes, span.start, span.end);
  const byte = cursor.peek();
  if (byte < 0x2d || byte > 0x39 || cursor.readNumber() !== 'long') return;
  column.padTo(row);
  if (micros !== undefined) column.appendHalves(cursor.low, cursor.high);
  else if (Number.isSafeInteger(cursor.double * 1_000)) column.append(cursor.double * 1_000);
}

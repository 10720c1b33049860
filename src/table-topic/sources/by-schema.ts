// Converters of records that name their schema, and of those whose schema is the subject's newest. Schemas without a
// binding are noted as needed: the job comes again when the coordinator has bound them.
import type { Converter, ConverterTarget } from '../converter.ts';
import type { SourceBinding, Sources } from '../job.ts';
import { sourceFormat } from './formats.ts';
import { MAX_NEEDED } from './look.ts';
import type { Place, RowDecoder } from './source.ts';
import { LATEST_KEY, readMessageIndexes, SchemaMark, type SourceKey, sourceKey } from './wire.ts';

/** Decoders (and refusals) kept for one side of a table. */
const MAX_COMPILED = 2_000;

interface Refused {
  readonly refused: () => false;
}

/** The decoders of one side of a table's records, made as they are needed. */
class Decoders {
  readonly #target: ConverterTarget;
  readonly #sources: Sources;
  readonly #place: Place;
  readonly #stage: 'key' | 'value';
  readonly #compiled = new Map<SourceKey, RowDecoder | Refused>();

  constructor(target: ConverterTarget, sources: Sources, place: Place) {
    this.#target = target;
    this.#sources = sources;
    this.#place = place;
    this.#stage = place === 'key' ? 'key' : 'value';
  }

  /** Whether a schema has messages, each bound by itself: undefined while it isn't known. */
  hasMessages(schema: string): boolean | undefined {
    const source = this.#sources.get(schema);
    return source === undefined ? undefined : source.kind === 'messages';
  }

  /** `id` is for the fault. */
  find(key: SourceKey, id: number): RowDecoder | Refused {
    const known = this.#compiled.get(key);
    if (known !== undefined) return known;
    // Message indexes come from records: whatever they make up is forgotten again.
    if (this.#compiled.size >= MAX_COMPILED) this.#compiled.clear();
    const made = this.#make(this.#sources.get(key), key, id);
    this.#compiled.set(key, made);
    return made;
  }

  need(key: SourceKey, id: number): false {
    const { needs, fault } = this.#target;
    const needed = this.#stage === 'key' ? needs.keySchemas : needs.valueSchemas;
    if (needed.size < MAX_NEEDED) needed.add(key);
    return fault.set(this.#stage, 'unknown_schema_id', 'not looked up yet', id);
  }

  #make(source: SourceBinding | undefined, key: SourceKey, id: number): RowDecoder | Refused {
    const { fault, columns, change } = this.#target;
    if (source === undefined || source.kind === 'messages') {
      return { refused: () => this.need(key, id) };
    }
    if (source.kind === 'refused') {
      return { refused: () => fault.set(this.#stage, source.reason, source.error, id) };
    }
    const { text, bindings } = source;
    return sourceFormat(text.type).compile({ text, place: this.#place, bindings }, columns, change);
  }
}

/** Decodes by the schema that precedes the value or is named in a header. */
export function bySchemaId(target: ConverterTarget, sources: Sources, place: Place): Converter {
  const { columns, fault, marks } = target;
  const stage = place === 'key' ? 'key' : 'value';
  const decoders = new Decoders(target, sources, place);
  const mark = new SchemaMark();
  let lastSchema = '';
  let last: RowDecoder | Refused | undefined;
  let hasMessages: boolean | undefined = false;
  let lastMessage = '';

  const switchTo = (schema: string): void => {
    lastSchema = schema;
    lastMessage = '';
    hasMessages = decoders.hasMessages(schema);
    last = hasMessages === false ? decoders.find(schema, mark.id) : undefined;
  };

  return (bytes, start, length) => {
    const end = start + length;
    let from = start;
    const header = marks.startOf(stage);
    if (header >= 0) {
      if (!mark.read(bytes, header, header + marks.lengthOf(stage))) {
        columns.rollback();
        return fault.set(stage, 'no_schema_id', 'the header with the schema id is malformed');
      }
    } else if (mark.read(bytes, start, end)) from = mark.end;
    else {
      columns.rollback();
      return fault.set(stage, 'no_schema_id', noIdText(bytes, start, length));
    }
    if (mark.schema !== lastSchema) switchTo(mark.schema);
    if (hasMessages !== false) {
      // Of a header's mark the indexes stand in the header.
      const limit = header < 0 ? end : header + marks.lengthOf(stage);
      const at = mark.end;
      let message = '';
      let after = at;
      if (at < limit && bytes[at] === 0) {
        message = '0';
        after = at + 1;
      } else {
        const indexes = readMessageIndexes(bytes, at, limit);
        message = indexes?.message ?? '';
        after = indexes?.end ?? at;
      }
      if (hasMessages === undefined) {
        columns.rollback();
        return decoders.need(sourceKey(mark.schema, message), mark.id);
      }
      if (message === '') {
        columns.rollback();
        return fault.set(stage, 'undecodable', 'the message indexes are malformed', mark.id);
      }
      if (message !== lastMessage || last === undefined) {
        last = decoders.find(sourceKey(mark.schema, message), mark.id);
        lastMessage = message;
      }
      if (header < 0) from = after;
    }
    const decoder = last!;
    if ('refused' in decoder) {
      columns.rollback();
      return decoder.refused();
    }
    const reason = decoder.decode(bytes, from, end);
    return reason === undefined || fault.set(stage, 'undecodable', reason, mark.id);
  };
}

/** Decodes bare values by the newest version of the topic's subject. */
export function byLatestSchema(target: ConverterTarget, sources: Sources, place: Place): Converter {
  const { columns, fault } = target;
  const stage = place === 'key' ? 'key' : 'value';
  const decoders = new Decoders(target, sources, place);
  const decoder = decoders.find(LATEST_KEY, -1);
  return (bytes, start, length) => {
    if ('refused' in decoder) {
      columns.rollback();
      return decoder.refused();
    }
    const reason = decoder.decode(bytes, start, start + length);
    return reason === undefined || fault.set(stage, 'undecodable', reason);
  };
}

function noIdText(bytes: Uint8Array, start: number, length: number): string {
  if (length === 0) return 'empty: a schema id (5 bytes) must precede it';
  if (length < 5) return `${length} bytes are too few for a schema id`;
  return `starts with byte ${bytes[start]}, not with 0 and a schema id`;
}

// JSON events without a schema: the image's columns are inferred from its values like any plain JSON's, and so are those
// of the source block, a struct of its own. Numbers stay numbers: what only a schema tells (that 19000 is a date) is unknown.
import type { StructColumn } from '../../formats/arrow/nested-columns.ts';
import type {
  Bindings,
  ProposedField,
  ProposedStruct,
  ProposedType,
} from '../../formats/arrow/proposed-schema.ts';
import type { TableColumns } from '../../formats/arrow/table-columns.ts';
import { JsonCursor } from '../../formats/json/cursor.ts';
import { compileJsonDecoder, type JsonDecoder, UNFIT } from '../../formats/json/decoder.ts';
import type { Committed, JsonInference } from '../../formats/json/infer.ts';
import type { RowChange } from '../change.ts';
import { isSourcePath } from '../evolve.ts';
import { CDC_PATHS, cdcFields } from './envelope.ts';
import type { Span } from './json-event.ts';
import { holdsPlaceholder, noteUnavailable, type PlaceholderColumn } from './unavailable.ts';

const SOURCE_PREFIX = `${CDC_PATHS.source}.`;

/** What records without a schema would like: two inferences, of the image and of the source block. */
export class PlainInference {
  readonly image: JsonInference;
  readonly source: JsonInference;

  constructor(make: () => JsonInference) {
    this.image = make();
    this.source = make();
  }

  add(bytes: Uint8Array, image: Span | undefined, source: Span | undefined): void {
    if (image !== undefined) this.image.add(bytes, image.start, image.end);
    if (source !== undefined) this.source.add(bytes, source.start, source.end);
  }

  proposed(committed: Committed = new Map()): ProposedStruct {
    const image = new Map([...committed].filter(([path]) => !path.startsWith(':')));
    const { fields } = this.image.proposed(image);
    const block = this.source.proposed(withoutPrefix(committed));
    const source: ProposedType | undefined =
      block.fields.length === 0
        ? undefined
        : { type: 'struct', fields: block.fields.map(inSource) };
    return { type: 'struct', fields: [...fields, ...cdcFields(source)] };
  }
}

function withoutPrefix<T>(byPath: ReadonlyMap<string, T>): Map<string, T> {
  return new Map(
    [...byPath].flatMap(([path, value]) =>
      path.startsWith(SOURCE_PREFIX) && isSourcePath(path)
        ? [[path.slice(SOURCE_PREFIX.length), value] as const]
        : [],
    ),
  );
}

/** A proposal's field with its paths below `_cdc_source`. */
function inSource(field: ProposedField): ProposedField {
  return { ...field, path: SOURCE_PREFIX + field.path, type: typeInSource(field.type) };
}

function typeInSource(type: ProposedType): ProposedType {
  if (typeof type === 'string') return type;
  if (type.type === 'struct') return { ...type, fields: type.fields.map(inSource) };
  if (type.type === 'list') {
    const elementPath = SOURCE_PREFIX + type.elementPath;
    return { ...type, elementPath, element: typeInSource(type.element) };
  }
  return {
    ...type,
    keyPath: SOURCE_PREFIX + type.keyPath,
    valuePath: SOURCE_PREFIX + type.valuePath,
    key: typeInSource(type.key),
    value: typeInSource(type.value),
  };
}

export interface PlainTarget {
  readonly columns: TableColumns;
  readonly bindings: Bindings;
  readonly change: RowChange;
  readonly maxColumns: number;
  /** Source paths that make no columns, `_cdc_source` and what is in it by theirs. */
  readonly ignores: ((path: string) => boolean) | undefined;
}

/** Decodes the two blocks of an event into their columns. */
export class PlainDecoder {
  readonly #columns: TableColumns;
  readonly #change: RowChange;
  readonly #image: JsonDecoder;
  readonly #source: JsonDecoder;
  readonly #sourceIgnored: boolean;
  readonly #cursor = new JsonCursor();
  readonly #struct: StructColumn | undefined;
  readonly #watched: readonly { readonly id: number; readonly column: PlaceholderColumn }[];

  constructor({ columns, bindings, change, maxColumns, ignores = () => false }: PlainTarget) {
    const image = new Map(
      [...bindings].filter(
        ([path]) => !path.startsWith(':') && isSourcePath(path) && !ignores(path),
      ),
    );
    const structId = bindings.get(CDC_PATHS.source);
    this.#columns = columns;
    this.#change = change;
    this.#image = compileJsonDecoder(columns, image, { maxColumns, ignores });
    this.#source = compileJsonDecoder(columns, withoutPrefix(bindings), {
      maxColumns,
      ignores: (path) => ignores(SOURCE_PREFIX + path),
    });
    this.#sourceIgnored = ignores(CDC_PATHS.source);
    this.#struct =
      structId === undefined ? undefined : (columns.byId(structId) as StructColumn | undefined);
    const own = new Set(image.values());
    this.#watched = columns.schema.fields.flatMap(({ id }) => {
      const column = columns.byId(id);
      return own.has(id) && holdsPlaceholder(column) ? [{ id, column }] : [];
    });
  }

  /** Undefined, UNFIT (ask `explain`), or what is wrong; the row is then rolled back. */
  decode(bytes: Uint8Array, image: Span | undefined, source: Span | undefined): string | undefined {
    const { rowCount } = this.#columns;
    if (image !== undefined) {
      const reason = this.#image.decode(bytes, image.start, image.end);
      if (reason !== undefined) return reason;
      for (const { id, column } of this.#watched) {
        if (column.length > rowCount) noteUnavailable(column, id, this.#change);
      }
    }
    if (source === undefined || this.#sourceIgnored) return undefined;
    // No block of it was ever seen: then there is no struct to put it into.
    if (this.#struct === undefined) {
      this.#cursor.reset(bytes, source.start, source.end);
      return this.#cursor.skipValue() ? this.#unfit() : undefined;
    }
    this.#struct.padTo(rowCount);
    const reason = this.#source.decode(bytes, source.start, source.end);
    if (reason === undefined) this.#struct.end();
    return reason;
  }

  #unfit(): string {
    this.#columns.rollback();
    return UNFIT;
  }

  /** After UNFIT: what the inference must be told besides the record. */
  explain(inference: PlainInference): void {
    inference.image.force(this.#image.misfits);
    inference.source.force(this.#source.misfits);
  }
}

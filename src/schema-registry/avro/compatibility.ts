// Can a reader with one schema read what a writer with another wrote? Avro specification 1.12, "Schema Resolution",
// with the reading of it that Apache Avro's Java library has (records, enums and fixed match by unqualified name).
// Pure. Not here: which versions are compared, and in which direction (schema-registry/compatibility.ts).
import { FloeError } from '../../base/error.ts';
import type {
  AvroSchema,
  EnumSchema,
  Field,
  FixedSchema,
  NamedSchema,
  PrimitiveType,
  RecordSchema,
  UnionSchema,
} from './schema.ts';

type IncompatibilityType =
  | 'NAME_MISMATCH'
  | 'FIXED_SIZE_MISMATCH'
  | 'MISSING_ENUM_SYMBOLS'
  | 'READER_FIELD_MISSING_DEFAULT_VALUE'
  | 'TYPE_MISMATCH'
  | 'MISSING_UNION_BRANCH';

export interface Incompatibility {
  readonly type: IncompatibilityType;
  /** Where in the reader's schema, e.g. `/fields/1/type`; a union's step is the writer's branch. */
  readonly path: string;
  /** The names, symbols, sizes or types that don't match. */
  readonly detail: string;
}

/** What a reader of the key type takes beside its own type. */
const PROMOTIONS: Partial<Record<PrimitiveType, readonly string[]>> = {
  long: ['int'],
  float: ['int', 'long'],
  double: ['int', 'long', 'float'],
  bytes: ['string'],
  string: ['bytes'],
};

/** Schemas nested deeper through named types are refused: comparing them would overflow the stack. */
const MAX_DEPTH = 1_000;
/** Differences that are kept of each pair; the verdict needs one, and lists would double level by level. */
const MAX_DIFFERENCES = 100;
/** Pairs of schemas that are looked at: unions of thousands of records would take hours. Real ones take hundreds. */
const MAX_PAIRS = 50_000;

/**
 * The reasons why `reader` can't read data of `writer`; none means that it can.
 * @throws FloeError `invalid` for schemas nested too deeply or too large to compare.
 */
export function differences(reader: AvroSchema, writer: AvroSchema): readonly Incompatibility[] {
  return new Comparison().compare(reader, writer, []);
}

type Path = readonly (string | number)[];
type Verdict = readonly Incompatibility[];
const COMPATIBLE: Verdict = [];

class Comparison {
  /** Per reader, per writer. A pair under way counts as compatible, which is what recursion needs. */
  readonly #verdicts = new Map<AvroSchema, Map<AvroSchema, Verdict>>();
  /** Pairs found compatible, in order, so that those resting on a refuted assumption can be forgotten. */
  readonly #assumed: (readonly [AvroSchema, AvroSchema])[] = [];
  #depth = 0;
  #pairs = 0;

  compare(reader: AvroSchema, writer: AvroSchema, path: Path): Verdict {
    const known = this.#verdicts.get(reader)?.get(writer);
    if (known !== undefined) return known;
    if (this.#depth >= MAX_DEPTH)
      throw new FloeError('invalid', `schemas are nested deeper than ${MAX_DEPTH} levels`);
    this.#pairs += 1;
    if (this.#pairs > MAX_PAIRS)
      throw new FloeError('invalid', `comparing takes more than ${MAX_PAIRS} steps`);
    const mark = this.#assumed.length;
    this.#remember(reader, writer, COMPATIBLE);
    this.#assumed.push([reader, writer]);
    this.#depth += 1;
    const verdict = this.#resolve(reader, writer, path).slice(0, MAX_DIFFERENCES);
    this.#depth -= 1;
    if (verdict.length > 0) {
      // What was found compatible meanwhile may rest on this pair: only refusals are certain.
      for (const [r, w] of this.#assumed.splice(mark)) this.#verdicts.get(r)?.delete(w);
      this.#remember(reader, writer, verdict);
    }
    return verdict;
  }

  #remember(reader: AvroSchema, writer: AvroSchema, verdict: Verdict): void {
    const row = this.#verdicts.get(reader);
    if (row === undefined) this.#verdicts.set(reader, new Map([[writer, verdict]]));
    else row.set(writer, verdict);
  }

  #resolve(reader: AvroSchema, writer: AvroSchema, path: Path): Verdict {
    if (writer.type === 'union') return this.#writerUnion(reader, writer, path);
    if (reader.type === 'union') return this.#readerUnion(reader, writer, path);
    switch (reader.type) {
      case 'array':
        return writer.type === 'array'
          ? this.compare(reader.items, writer.items, [...path, 'items'])
          : mismatch(reader, writer, path);
      case 'map':
        return writer.type === 'map'
          ? this.compare(reader.values, writer.values, [...path, 'values'])
          : mismatch(reader, writer, path);
      case 'record':
      case 'error':
        return writer.type === 'record' || writer.type === 'error'
          ? [...names(reader, writer, path), ...this.#fields(reader, writer, path)]
          : mismatch(reader, writer, path);
      case 'enum':
        return writer.type === 'enum'
          ? [...names(reader, writer, path), ...symbols(reader, writer, path)]
          : mismatch(reader, writer, path);
      case 'fixed':
        return writer.type === 'fixed'
          ? [...names(reader, writer, path), ...sizes(reader, writer, path)]
          : mismatch(reader, writer, path);
      default:
        return reader.type === writer.type || PROMOTIONS[reader.type]?.includes(writer.type)
          ? COMPATIBLE
          : mismatch(reader, writer, path);
    }
  }

  /** Any branch may have been written, so each must be readable. */
  #writerUnion(reader: AvroSchema, writer: UnionSchema, path: Path): Verdict {
    if (reader.type !== 'union')
      return writer.branches.flatMap((branch) => this.compare(reader, branch, path));
    return writer.branches.flatMap((branch, index) =>
      this.#readerUnion(reader, branch, [...path, index]),
    );
  }

  #readerUnion(reader: UnionSchema, writer: AvroSchema, path: Path): Verdict {
    const readable = reader.branches.some(
      (branch) => this.compare(branch, writer, path).length === 0,
    );
    if (readable) return COMPATIBLE;
    return [
      difference(
        'MISSING_UNION_BRANCH',
        path,
        `reader union lacking writer type: ${typeName(writer)}`,
      ),
    ];
  }

  #fields(reader: RecordSchema, writer: RecordSchema, path: Path): Verdict {
    return reader.fields.flatMap((field, index) => {
      const at = [...path, 'fields', index];
      const written = writtenField(field, writer);
      if (written !== undefined) return this.compare(field.schema, written.schema, [...at, 'type']);
      if (field.default !== undefined) return COMPATIBLE;
      return [difference('READER_FIELD_MISSING_DEFAULT_VALUE', at, field.name)];
    });
  }
}

/** The writer's field of that name, else of one of the reader field's aliases. */
function writtenField(field: Field, writer: RecordSchema): Field | undefined {
  const direct = writer.fields.find((other) => other.name === field.name);
  return direct ?? writer.fields.find((other) => field.aliases.includes(other.name));
}

function names(reader: NamedSchema, writer: NamedSchema, path: Path): Verdict {
  if (reader.name === writer.name || reader.aliases.includes(writer.fullName)) return COMPATIBLE;
  return [difference('NAME_MISMATCH', [...path, 'name'], `expected: ${writer.fullName}`)];
}

function symbols(reader: EnumSchema, writer: EnumSchema, path: Path): Verdict {
  if (reader.default !== undefined) return COMPATIBLE;
  const missing = writer.symbols.filter((symbol) => !reader.symbols.includes(symbol));
  if (missing.length === 0) return COMPATIBLE;
  return [difference('MISSING_ENUM_SYMBOLS', [...path, 'symbols'], `[${missing.join(', ')}]`)];
}

function sizes(reader: FixedSchema, writer: FixedSchema, path: Path): Verdict {
  if (reader.size === writer.size) return COMPATIBLE;
  const detail = `expected: ${writer.size}, found: ${reader.size}`;
  return [difference('FIXED_SIZE_MISMATCH', [...path, 'size'], detail)];
}

function mismatch(reader: AvroSchema, writer: AvroSchema, path: Path): Verdict {
  const detail = `reader type: ${typeName(reader)} not compatible with writer type: ${typeName(writer)}`;
  return [difference('TYPE_MISMATCH', path, detail)];
}

function difference(type: IncompatibilityType, path: Path, detail: string): Incompatibility {
  return { type, path: `/${path.join('/')}`, detail };
}

function typeName(schema: AvroSchema): string {
  return schema.type.toUpperCase();
}

// Infers columns from JSON records: the table's first schema, and later whatever new records need.
//
// Types by the rules page: boolean, long, double, string, struct, list. Integers and fractions together are double,
// or text (`number`) when an integer past 2^53 is among them. Null, {} and [] make no column. A field with values
// of several types keeps the type that came first (or the committed one) and gets a column `<name>__<type>` for each
// other; a list whose elements disagree becomes JSON text. Past the limits of columns and depth, `_rest`.
// Not for: bound columns and decoding (decoder.ts, which uses the same paths).
import {
  ColumnNames,
  elementPath,
  fieldPath,
  keyPath,
  type ProposedField,
  type ProposedStruct,
  type ProposedType,
  VALUE_COLUMN,
  valuePath,
} from '../arrow/proposed-schema.ts';
import { RowFailure } from '../arrow/row-failure.ts';
import type { IcebergType } from '../iceberg/types.ts';
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  JsonCursor,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './cursor.ts';
import {
  DEFAULT_MAX_COLUMNS,
  type JsonKind,
  MAX_COLUMN_DEPTH,
  REST_PATH,
  ROOT_TEXT_PATH,
  variantPath,
} from './paths.ts';
import { IsoReader } from './timestamps.ts';

export interface InferenceOptions {
  /** Leaf columns at most (default 1,000); the rest of the fields go to `_rest`. */
  readonly maxColumns?: number;
  /** Strings that all look like ISO timestamps with (without) offset, or like dates, become those types. */
  readonly timestamps?: boolean;
}

/** What a committed table has at a path: the type, and the column's name. */
export interface CommittedColumn {
  readonly name: string;
  readonly type: IcebergType;
}

/** Source path → what is committed there. */
export type Committed = ReadonlyMap<string, CommittedColumn>;

/** What was seen at one place of the records. */
interface Seen {
  /** Kinds in the order of their first appearance. */
  readonly kinds: Set<JsonKind>;
  /** An integer past 2^53 was seen: it doesn't fit a double. */
  wide: boolean;
  /** Whether all strings so far have the form; only watched with `timestamps`. */
  zoned: boolean;
  local: boolean;
  dates: boolean;
  readonly fields: Map<string, Seen>;
  element: Seen | undefined;
}

const newSeen = (): Seen => ({
  kinds: new Set(),
  wide: false,
  zoned: true,
  local: true,
  dates: true,
  fields: new Map(),
  element: undefined,
});

export class JsonInference {
  readonly #options: Required<InferenceOptions>;
  readonly #cursor = new JsonCursor();
  readonly #iso = new IsoReader();
  readonly #root = newSeen();
  #rootText = false;
  #rest = false;
  readonly #forced = new Set<string>();
  /** Records added that were JSON. */
  records = 0;

  constructor({ maxColumns = DEFAULT_MAX_COLUMNS, timestamps = false }: InferenceOptions = {}) {
    this.#options = { maxColumns, timestamps };
  }

  /** Looks at one record. Undefined, or why it is no JSON (it then counts for nothing beyond what was read). */
  add(bytes: Uint8Array, start: number, end: number): string | undefined {
    const cursor = this.#cursor;
    cursor.reset(bytes, start, end);
    try {
      // Checked whole before it is looked at, so that broken records leave no trace.
      const content = cursor.skipValue();
      cursor.finish();
      cursor.reset(bytes, start, end);
      if (cursor.peek() === OPEN_BRACE) this.#object(this.#root, 0);
      else if (content) this.#rootText = true;
      this.records++;
      return undefined;
    } catch (failure) {
      if (!(failure instanceof RowFailure)) throw failure;
      return failure.reason;
    }
  }

  /**
   * Asks for columns at variant paths whatever the types say: what `JsonDecoder.misfits` names, such as text that is
   * no timestamp in a timestamp column.
   */
  force(paths: readonly string[]): void {
    for (const path of paths) this.#forced.add(path);
  }

  /** True when the value holds anything: every level of a record is read once, however deep. */
  #value(seen: Seen, depth: number): boolean {
    const cursor = this.#cursor;
    switch (cursor.peek()) {
      case QUOTE:
        cursor.readString();
        seen.kinds.add('string');
        if (this.#options.timestamps) this.#watchTime(seen);
        return true;
      case OPEN_BRACE:
        if (depth >= MAX_COLUMN_DEPTH) return this.#tooDeep();
        if (!this.#object(seen, depth)) return false;
        seen.kinds.add('struct');
        return true;
      case OPEN_BRACKET:
        if (depth >= MAX_COLUMN_DEPTH) return this.#tooDeep();
        return this.#array(seen, depth);
      case 0x74:
      case 0x66:
      case 0x6e:
        if (cursor.literal() === null) return false;
        seen.kinds.add('boolean');
        return true;
      default: {
        const kind = cursor.readNumber();
        seen.kinds.add(kind);
        if (kind === 'long' && !Number.isSafeInteger(cursor.double)) seen.wide = true;
        return true;
      }
    }
  }

  #tooDeep(): boolean {
    const content = this.#cursor.skipValue();
    if (content) this.#rest = true;
    return content;
  }

  /** True when the object has any content. */
  #object(seen: Seen, depth: number): boolean {
    const cursor = this.#cursor;
    cursor.pos++;
    if (cursor.peek() === CLOSE_BRACE) {
      cursor.pos++;
      return false;
    }
    let content = false;
    do {
      cursor.key();
      const name = cursor.stringText();
      let field = seen.fields.get(name);
      if (field === undefined) {
        field = newSeen();
        seen.fields.set(name, field);
      }
      if (this.#value(field, depth + 1)) content = true;
    } while (cursor.more(CLOSE_BRACE));
    return content;
  }

  #array(seen: Seen, depth: number): boolean {
    const cursor = this.#cursor;
    cursor.pos++;
    if (cursor.peek() === CLOSE_BRACKET) {
      cursor.pos++;
      return false;
    }
    seen.element ??= newSeen();
    let content = false;
    do if (this.#value(seen.element, depth + 1)) content = true;
    while (cursor.more(CLOSE_BRACKET));
    if (seen.element.kinds.size > 0) seen.kinds.add('list');
    return content;
  }

  #watchTime(seen: Seen): void {
    const { text, textStart, textEnd } = this.#cursor;
    const iso = this.#iso;
    if (iso.readTimestamp(text, textStart, textEnd)) {
      seen.dates = false;
      if (iso.hasOffset) seen.local = false;
      else seen.zoned = false;
    } else {
      seen.zoned = false;
      seen.local = false;
      if (!iso.readDate(text, textStart, textEnd)) seen.dates = false;
    }
  }

  /**
   * The columns that the records so far need: committed ones that they use, with their names and types, and new
   * ones. With nothing committed it is the table's first schema. Fields in the order of their first appearance.
   */
  proposed(committed: Committed = new Map()): ProposedStruct {
    const proposer = new Proposer({ committed, forced: this.#forced }, this.#options);
    const fields = proposer.fields(this.#root, '', true);
    const extra = (path: string, name: string) => {
      fields.push({ name, aliases: [], path, type: 'string' });
    };
    if (this.#rootText || committed.has(ROOT_TEXT_PATH)) extra(ROOT_TEXT_PATH, VALUE_COLUMN);
    if (this.#rest || proposer.full || committed.has(REST_PATH)) extra(REST_PATH, '_rest');
    return { type: 'struct', fields };
  }
}

/** What decides beside the records. */
interface Given {
  readonly committed: Committed;
  readonly forced: ReadonlySet<string>;
}

/** Turns what was seen into columns, within the budget. */
class Proposer {
  readonly #given: Given;
  readonly #timestamps: boolean;
  #budget: number;
  /** Something had to be left out. */
  full = false;

  constructor(given: Given, { maxColumns, timestamps }: Required<InferenceOptions>) {
    this.#given = given;
    this.#timestamps = timestamps;
    let leaves = 0;
    for (const [path, { type }] of given.committed) {
      if (!path.startsWith(':') && typeof type === 'string') leaves++;
    }
    this.#budget = maxColumns - leaves;
  }

  /** The fields of one object: what is committed keeps its name, new ones get free ones. */
  fields({ fields }: Seen, parent: string, topLevel: boolean): ProposedField[] {
    const { committed } = this.#given;
    const names = new ColumnNames(topLevel);
    for (const name of namesUnder(parent, committed)) names.reserve(name);
    const proposed: ProposedField[] = [];
    for (const [name, seen] of fields) {
      for (const column of columnsOf(seen, fieldPath(parent, name), this.#given)) {
        const type = this.#type(seen, column);
        if (type === undefined) continue;
        const wanted = column.variant ? `${name}__${column.kind}` : name;
        const columnName = committed.get(column.path)?.name ?? names.take(wanted);
        proposed.push({ name: columnName, aliases: [], path: column.path, type });
      }
    }
    return proposed;
  }

  /** The type of a wanted column, or undefined when nothing is in it or the budget is used up. */
  #type(seen: Seen, { kind, base, committed }: WantedColumn): ProposedType | undefined {
    // A map or a list of maps is never inferred, only declared: it stays as it is.
    if (typeof committed === 'object' && committed.type === 'map') {
      return proposedType(committed, base);
    }
    if (kind === 'struct') {
      const fields = this.fields(seen, base, false);
      return fields.length > 0 ? { type: 'struct', fields } : undefined;
    }
    if (kind === 'list') {
      const inside = elementPath(base);
      const [column] = columnsOf(seen.element!, inside, this.#given);
      const element = column === undefined ? undefined : this.#type(seen.element!, column);
      return element === undefined ? undefined : { type: 'list', elementPath: inside, element };
    }
    if (committed !== undefined) return proposedType(committed, base);
    if (this.#budget <= 0) {
      this.full = true;
      return undefined;
    }
    this.#budget--;
    return this.#scalar(seen, kind);
  }

  #scalar(seen: Seen, kind: JsonKind): ProposedType {
    if (kind === 'boolean' || kind === 'long' || kind === 'double') return kind;
    if (kind === 'string' && this.#timestamps) {
      if (seen.zoned) return 'timestamptz';
      if (seen.local) return 'timestamp';
      if (seen.dates) return 'date';
    }
    return 'string';
  }
}

/** A committed type as a proposal of what is there. */
function proposedType(type: IcebergType, path: string): ProposedType {
  if (typeof type === 'string') return type;
  if (type.type === 'struct') {
    const fields = type.fields.map(({ name, type: inner }) => {
      const own = fieldPath(path, name);
      return { name, aliases: [], path: own, type: proposedType(inner, own) };
    });
    return { type: 'struct', fields };
  }
  if (type.type === 'list') {
    const inside = elementPath(path);
    return { type: 'list', elementPath: inside, element: proposedType(type.element, inside) };
  }
  const [key, value] = [keyPath(path), valuePath(path)];
  return {
    type: 'map',
    keyPath: key,
    key: proposedType(type.key, key),
    valuePath: value,
    value: proposedType(type.value, value),
  };
}

/** Names that the columns directly in the object at `parent` have. */
function* namesUnder(parent: string, committed: Committed): Generator<string> {
  const prefix = parent === '' ? '' : `${parent}.`;
  for (const [path, { name }] of committed) {
    if (!path.startsWith(prefix)) continue;
    const rest = path.slice(prefix.length);
    if (!/(?<!\\)(?:\\\\)*[.[{]/.test(rest)) yield name;
  }
}

interface WantedColumn {
  readonly kind: JsonKind;
  readonly path: string;
  /** The path without variant: where what is inside has its paths. */
  readonly base: string;
  /** Named `<name>__<kind>`. */
  readonly variant: boolean;
  /** Its committed type, when it is there already. */
  readonly committed: IcebergType | undefined;
}

/** Kinds after numbers were brought together: long and double are double, or text when an integer is too wide. */
function mergedKinds({ kinds, wide }: Seen): JsonKind[] {
  let number: JsonKind = kinds.has('double') ? 'double' : 'long';
  if (kinds.has('number') || (kinds.has('double') && wide)) number = 'number';
  const merged = new Set<JsonKind>();
  for (const kind of kinds) merged.add(isNumber(kind) ? number : kind);
  return [...merged];
}

const isNumber = (kind: JsonKind) => kind === 'long' || kind === 'double' || kind === 'number';

const NUMERIC_TYPES: ReadonlySet<string> = new Set(['boolean', 'int', 'long', 'float', 'double']);

/** Does a committed column of `type` take the values of `kind` that were seen, as far as types tell? */
function takes(type: IcebergType, kind: JsonKind, seen: Seen, place: Place): boolean {
  if (typeof type !== 'string') {
    if (type.type === 'map') return kind === 'struct';
    if (type.type !== kind) return false;
    return kind === 'struct' || elementFits(seen.element!, place);
  }
  const decimal = type.startsWith('decimal');
  switch (kind) {
    case 'boolean':
      return type === 'boolean';
    case 'long':
      if (type === 'double' || type === 'float') return !seen.wide;
      return decimal || type === 'long' || type === 'int';
    case 'double':
      return decimal || type === 'double' || type === 'float';
    case 'number':
      return decimal;
    case 'string':
      return !NUMERIC_TYPES.has(type);
    default:
      return false;
  }
}

interface Place extends Given {
  readonly path: string;
}

/** The elements of a committed list: each kind is one that the element type takes. */
function elementFits(element: Seen, { path, ...given }: Place): boolean {
  const inside = elementPath(path);
  const column = given.committed.get(inside);
  if (column === undefined) return true;
  return [...element.kinds].every((kind) =>
    takes(column.type, kind, element, { path: inside, ...given }),
  );
}

/** Can the elements seen share one type? */
function isUniform(element: Seen): boolean {
  const kinds = mergedKinds(element);
  if (kinds.length !== 1 || kinds[0] === 'number') return false;
  return element.element === undefined || isUniform(element.element);
}

const KINDS: readonly JsonKind[] = [
  'boolean',
  'long',
  'double',
  'number',
  'string',
  'struct',
  'list',
  'json',
];

/** The columns that a place needs: the committed one if it is used, then one for each kind that it doesn't take. */
function columnsOf(seen: Seen, path: string, given: Given): WantedColumn[] {
  const { committed, forced } = given;
  const wanted = new Map<string, WantedColumn>();
  const want = (kind: JsonKind, own: string, variant: boolean) => {
    const there = committed.get(own)?.type;
    if (!wanted.has(own)) {
      wanted.set(own, { kind, path: own, base: path, variant, committed: there });
    }
  };
  const main = committed.get(path)?.type;
  let kinds = mergedKinds(seen);
  if (main !== undefined) {
    const taken = (kind: JsonKind) => takes(main, kind, seen, { path, ...given });
    if ([...seen.kinds].some(taken)) want(kindOf(main), path, false);
    kinds = [...seen.kinds].filter((kind) => !taken(kind));
  }
  if (kinds.length > 0 && committed.has(variantPath(path, 'json'))) {
    // A column of JSON text takes whatever no other does.
    want('json', variantPath(path, 'json'), true);
    kinds = [];
  }
  let first = main === undefined && !KINDS.some((kind) => committed.has(variantPath(path, kind)));
  for (const kind of kinds) {
    // A list that can't be one column is text; so is one whose elements a committed list doesn't take.
    const broken = kind === 'list' && !fitsList(seen, path, given);
    const as: JsonKind = broken ? 'json' : kind;
    const plain = first && as !== 'json' && as !== 'number';
    want(as, plain ? path : variantPath(path, as), !first);
    first = false;
  }
  for (const kind of KINDS) {
    if (forced.has(variantPath(path, kind))) want(kind, variantPath(path, kind), true);
  }
  return [...wanted.values()];
}

/** Can the lists seen go to the place's list column, committed or new? */
function fitsList(seen: Seen, path: string, given: Given): boolean {
  const types = [
    given.committed.get(path)?.type,
    given.committed.get(variantPath(path, 'list'))?.type,
  ];
  const list = types.find((type) => typeof type === 'object' && type.type === 'list');
  if (list === undefined) return isUniform(seen.element!);
  return takes(list, 'list', seen, { path, ...given });
}

function kindOf(type: IcebergType): JsonKind {
  if (typeof type !== 'string') return type.type === 'list' ? 'list' : 'struct';
  if (type === 'boolean' || type === 'long' || type === 'double') return type;
  return 'string';
}

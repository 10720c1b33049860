// The list syntax of table topic configs: `[a, b.c, \`odd name\`]`, partition expressions over such columns:
// `[hour(_kafka_timestamp), bucket(id, 16), truncate(name, 4), country]`, and sort expressions, the same followed by
// `asc|desc` and `nulls first|last`. Text to plain data and back.
// Not for: whether a column exists or a transform fits its type (validate.ts, once a schema is known).
import { FloeError } from '../base/error.ts';

/** A column by its path from the root; `a.b` is field b of struct a. */
export type ColumnPath = readonly string[];

export const TRANSFORM_NAMES = [
  'identity',
  'year',
  'month',
  'day',
  'hour',
  'bucket',
  'truncate',
  'void',
] as const;
export type TransformName = (typeof TRANSFORM_NAMES)[number];

/** One partition field as configured. `parameter` is the bucket count or the width, else undefined. */
export interface PartitionExpression {
  readonly transform: TransformName;
  readonly column: ColumnPath;
  readonly parameter?: number;
}

/** One sort field as configured. */
export interface SortExpression extends PartitionExpression {
  readonly direction: 'asc' | 'desc';
  readonly nulls: 'first' | 'last';
}

/** Items a list may hold; a longer one is a mistake, not a table. */
const MAX_ITEMS = 1_000;
/** Iceberg's buckets are int32; more than this many partitions of one field only make small files. */
const MAX_PARAMETER = 1_000_000;

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get done(): boolean {
    this.#skip();
    return this.#at >= this.#text.length;
  }

  /** Consumes `symbol` when it comes next. */
  take(symbol: string): boolean {
    this.#skip();
    if (!this.#text.startsWith(symbol, this.#at)) return false;
    this.#at += symbol.length;
    return true;
  }

  /** Consumes one of `words`, whatever its letters' case, when it comes next. */
  takeWord<T extends string>(...words: readonly T[]): T | undefined {
    this.#skip();
    const next = /^[A-Za-z]+(?![^\s`,.()[\]])/.exec(this.#text.slice(this.#at))?.[0];
    const found = words.find((word) => word === next?.toLowerCase());
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  expect(symbol: string): void {
    if (!this.take(symbol)) throw this.wrong(`"${symbol}"`);
  }

  wrong(wanted: string): FloeError {
    const rest = this.#text.slice(this.#at, this.#at + 20);
    const found = rest === '' ? 'the end' : `"${rest}"`;
    return new FloeError('invalid', `"${this.#text}": expected ${wanted}, found ${found}`);
  }

  /** A bare word (anything but list punctuation) or one in backticks, a doubled backtick being one. */
  name(): string {
    this.#skip();
    const quoted = /^`((?:[^`]|``)+)`/.exec(this.#text.slice(this.#at));
    const bare = /^[^\s`,.()[\]]+/.exec(this.#text.slice(this.#at));
    const found = quoted ?? bare;
    if (found === null) throw this.wrong('a column name');
    this.#at += found[0].length;
    return quoted === null ? found[0] : quoted[1]!.replaceAll('``', '`');
  }

  path(): ColumnPath {
    const segments = [this.name()];
    while (this.take('.')) segments.push(this.name());
    return segments;
  }

  #skip(): void {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at += 1;
  }
}

/** Reads `[item, item]`; brackets may be left out, as may the whole text. */
function readList<T>(text: string, item: (reader: Reader) => T): readonly T[] {
  const reader = new Reader(text);
  const bracketed = reader.take('[');
  const items: T[] = [];
  while (!reader.done && !(bracketed && reader.take(']'))) {
    items.push(item(reader));
    if (items.length > MAX_ITEMS) throw reader.wrong(`at most ${MAX_ITEMS} items`);
    if (reader.take(',')) continue;
    if (bracketed) reader.expect(']');
    if (!reader.done) throw reader.wrong('a comma or the end');
    break;
  }
  if (!reader.done) throw reader.wrong('the end');
  return items;
}

/** `[a, b.c, \`odd name\`]` → paths. @throws FloeError `invalid`. */
export function parseColumns(text: string): readonly ColumnPath[] {
  return readList(text, (reader) => reader.path());
}

/** `[hour(ts), bucket(id, 16), country]` → expressions. @throws FloeError `invalid`. */
export function parsePartitionBy(text: string): readonly PartitionExpression[] {
  return readList(text, readExpression);
}

/**
 * `[ts desc nulls last, bucket(id, 16), country]` → expressions. Without a word ascending with nulls first, descending
 * with nulls last, as engines have it. @throws FloeError `invalid`.
 */
export function parseSortBy(text: string): readonly SortExpression[] {
  return readList(text, (reader) => {
    const expression = readExpression(reader);
    const direction = reader.takeWord('asc', 'desc') ?? 'asc';
    let nulls: SortExpression['nulls'] = direction === 'asc' ? 'first' : 'last';
    if (reader.takeWord('nulls') !== undefined) {
      const word = reader.takeWord('first', 'last');
      if (word === undefined) throw reader.wrong('first or last');
      nulls = word;
    }
    return { ...expression, direction, nulls };
  });
}

function readExpression(reader: Reader): PartitionExpression {
  const first = reader.path();
  if (!reader.take('(')) return { transform: 'identity', column: first };
  const transform = TRANSFORM_NAMES.find((name) => name === first.join('.').toLowerCase());
  if (transform === undefined) {
    throw new FloeError(
      'invalid',
      `"${first.join('.')}" is no partition transform: use ${TRANSFORM_NAMES.join(', ')}`,
    );
  }
  const column = reader.path();
  const parameter = reader.take(',') ? readParameter(reader) : undefined;
  reader.expect(')');
  const takes = transform === 'bucket' || transform === 'truncate';
  if (takes !== (parameter !== undefined)) {
    throw new FloeError(
      'invalid',
      takes
        ? `${transform} needs a number: ${transform}(${formatPath(column)}, 16)`
        : `${transform} takes a column only: ${transform}(${formatPath(column)})`,
    );
  }
  return { transform, column, ...(parameter === undefined ? {} : { parameter }) };
}

function readParameter(reader: Reader): number {
  const word = reader.name();
  const value = Number(word);
  if (!/^\d+$/.test(word) || value < 1 || value > MAX_PARAMETER) {
    throw new FloeError('invalid', `"${word}" is not a number within 1…${MAX_PARAMETER}`);
  }
  return value;
}

/** The canonical text of a column: segments that need it in backticks. */
export function formatPath(path: ColumnPath): string {
  return path
    .map((name) => (/^[^\s`,.()[\]]+$/.test(name) ? name : `\`${name.replaceAll('`', '``')}\``))
    .join('.');
}

export function formatColumns(columns: readonly ColumnPath[]): string {
  return listOf(columns.map(formatPath));
}

const listOf = (items: readonly string[]) => (items.length === 0 ? '' : `[${items.join(', ')}]`);

function formatExpression({ transform, column, parameter }: PartitionExpression): string {
  if (transform === 'identity') return formatPath(column);
  const rest = parameter === undefined ? '' : `, ${parameter}`;
  return `${transform}(${formatPath(column)}${rest})`;
}

export function formatPartitionBy(expressions: readonly PartitionExpression[]): string {
  return listOf(expressions.map(formatExpression));
}

export function formatSortBy(expressions: readonly SortExpression[]): string {
  return listOf(
    expressions.map((expression) => {
      const { direction, nulls } = expression;
      return `${formatExpression(expression)} ${direction} nulls ${nulls}`;
    }),
  );
}

/** The transform in Iceberg's own words: `bucket[16]`, `hour`. Spec: "Partition Transforms". */
export function transformText({ transform, parameter }: PartitionExpression): string {
  return parameter === undefined ? transform : `${transform}[${parameter}]`;
}

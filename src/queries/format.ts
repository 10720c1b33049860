// Results as text for people and files: an aligned table, JSON, CSV. Pure: used by the HTTP routes and the CLI.
import type { JsonValue } from './values.ts';

export interface TabularResult {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly JsonValue[])[];
}

export type ResultFormat = 'table' | 'json' | 'csv';

/** Widest a cell of a table gets, in characters; longer values end in `…`. */
const MAX_CELL = 60;

export function formatResult(result: TabularResult, format: ResultFormat): string {
  switch (format) {
    case 'json':
      return `${JSON.stringify(result, undefined, 2)}\n`;
    case 'csv':
      return [result.columns.map((column) => column.name), ...result.rows].map(csvLine).join('');
    case 'table':
      return formatTable(result);
  }
}

const NUMERIC = /^(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT|U[A-Z]+INT|FLOAT|DOUBLE|DECIMAL)/;

function formatTable({ columns, rows }: TabularResult): string {
  const cells = rows.map((row) => row.map(cellText));
  const widths = columns.map(({ name }, index) =>
    cells.reduce((width, row) => Math.max(width, length(row[index]!)), length(name)),
  );
  const right = columns.map(({ type }) => NUMERIC.test(type));
  const line = (texts: readonly string[]) =>
    texts
      .map((text, index) => pad(text, widths[index]!, right[index]!))
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '─'.repeat(width)).join('  ');
  const header = line(columns.map((column) => column.name));
  const count = `(${rows.length} ${rows.length === 1 ? 'row' : 'rows'})`;
  return `${[header, rule, ...cells.map(line), count].join('\n')}\n`;
}

function cellText(value: JsonValue): string {
  const text = value === null ? 'NULL' : plainText(value).replaceAll(/[\r\n\t]/g, ' ');
  const characters = [...text];
  return characters.length > MAX_CELL ? `${characters.slice(0, MAX_CELL - 1).join('')}…` : text;
}

const plainText = (value: JsonValue): string =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);

const length = (text: string) => [...text].length;

function pad(text: string, width: number, right: boolean): string {
  const space = ' '.repeat(width - length(text));
  return right ? space + text : text + space;
}

/** One line of RFC 4180. Null is nothing, the empty text is `""`: the two stay different. */
export function csvLine(values: readonly JsonValue[]): string {
  return `${values.map(csvCell).join(',')}\r\n`;
}

function csvCell(value: JsonValue): string {
  if (value === null) return '';
  const text = plainText(value);
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

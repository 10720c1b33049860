// Plain text tables for terminals: columns padded, numbers to the right, one line a row whatever its cells hold.

/** Widest a cell of an answer gets, in characters; longer values end in `…`. */
const MAX_CELL = 60;

/** `rows` under `columns`, without trailing spaces. Null and undefined are empty cells. */
export function textTable(
  columns: readonly string[],
  rows: readonly (readonly unknown[])[],
): string {
  const right = columns.map((_, i) => rows.length > 0 && rows.every((row) => isNumber(row[i])));
  const cells = rows.map((row) => row.map((value) => (value == null ? '' : String(value))));
  return layOut(columns, cells, right);
}

/** An answer of `POST /v1/sql` as application/json. */
export interface Answer {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly unknown[])[];
}

const NUMERIC = /^(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT|U[A-Z]+INT|FLOAT|DOUBLE|DECIMAL)/;

/** An answer as a table and its number of rows. Null and empty text stay different; long values are cut. */
export function answerTable({ columns, rows }: Answer): string {
  const names = columns.map(({ name }) => name);
  const right = columns.map(({ type }) => NUMERIC.test(type));
  const count = `(${rows.length} ${rows.length === 1 ? 'row' : 'rows'})`;
  return `${layOut(
    names,
    rows.map((row) => row.map(answerCell)),
    right,
  )}${count}\n`;
}

function answerCell(value: unknown): string {
  if (value === null) return 'NULL';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const characters = [...text.replaceAll(/[\r\n\t]/g, ' ')];
  if (characters.length <= MAX_CELL) return characters.join('');
  return `${characters.slice(0, MAX_CELL - 1).join('')}…`;
}

function layOut(
  columns: readonly string[],
  cells: readonly (readonly string[])[],
  right: readonly boolean[],
): string {
  const widths = columns.map((name, i) =>
    cells.reduce((width, row) => Math.max(width, length(row[i]!)), length(name)),
  );
  const line = (texts: readonly string[]) =>
    texts
      .map((text, i) => pad(text, widths[i]!, right[i]!))
      .join('  ')
      .trimEnd();
  return [columns, ...cells].map((texts) => `${line(texts)}\n`).join('');
}

/** Characters, as a terminal counts most of them. */
const length = (text: string) => [...text].length;

function pad(text: string, width: number, right: boolean): string {
  const space = ' '.repeat(width - length(text));
  return right ? space + text : text + space;
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'bigint' || value == null;
}

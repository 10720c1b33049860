// Plain text tables for terminals: columns padded, numbers to the right.

/** `rows` under `columns`, one line each, without trailing spaces. */
export function textTable(
  columns: readonly string[],
  rows: readonly (readonly unknown[])[],
): string {
  const cells = rows.map((row) =>
    row.map((value) => (value === null || value === undefined ? '' : String(value))),
  );
  const widths = columns.map((name, i) =>
    Math.max(name.length, ...cells.map((row) => row[i]!.length)),
  );
  const numeric = columns.map((_, i) => rows.length > 0 && rows.every((row) => isNumber(row[i])));
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => (numeric[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd();
  return [line(columns), ...cells.map(line)].map((text) => `${text}\n`).join('');
}

function isNumber(value: unknown): boolean {
  return (
    typeof value === 'number' || typeof value === 'bigint' || value === null || value === undefined
  );
}

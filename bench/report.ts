// Rows of figures → one table: each system's spread over the rounds, and Floe's median as a multiple of each rival's.
import { textTable } from '../src/cli/text-table.ts';

/** A measurement: who (`name`), of what, and its figures. */
export type Row = Readonly<Record<string, string | number>>;

export interface ReportOptions {
  /** What tells cases apart. */
  readonly by: readonly string[];
  readonly figures: readonly string[];
  /** Systems in the order of columns; the first is compared with the others. */
  readonly names: readonly string[];
}

/** One line a case and figure. */
export function report(rows: readonly Row[], { by, figures, names }: ReportOptions): string {
  const cases = Map.groupBy(rows, (row) =>
    by
      .filter((key) => key in row)
      .map((key) => `${key}=${row[key]}`)
      .join(' '),
  );
  const [first, ...rivals] = names;
  const lines: unknown[][] = [];
  for (const [label, found] of cases) {
    for (const figure of figures) {
      const of = (name: string) =>
        found
          .filter((row) => row['name'] === name && figure in row)
          .map((row) => Number(row[figure]));
      if (of(first!).length === 0) continue;
      const ratios = rivals
        .filter((name) => of(name).length > 0)
        .map((name) => `${(median(of(first!)) / median(of(name))).toFixed(2)} × ${name}`);
      const spreads = names.map((name) => (of(name).length > 0 ? spread(of(name)) : ''));
      lines.push([label, figure, ...spreads, ratios.join(', ')]);
    }
  }
  return textTable(['case', 'figure', ...names, `${first} is`], lines);
}

/** min / median / max. */
function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  return [sorted[0]!, median(sorted), sorted.at(-1)!]
    .map((value) => Number(value.toPrecision(4)))
    .join(' / ');
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

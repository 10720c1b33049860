// What `floe doctor` and `floe fsck` find: one line each, with what to do about it. Pure.
import { textTable } from '../text-table.ts';

/** `wrong`: records or acks are at risk, or nothing works; `warning`: worth an operator's while. */
export type Severity = 'ok' | 'warning' | 'wrong';

export interface Finding {
  readonly area: 'store' | 'database' | 'clock' | 'catalog' | 'cluster' | 'log' | 'tables';
  /** The setting or fact. */
  readonly what: string;
  /** As it was found. */
  readonly value: string;
  readonly severity: Severity;
  /** What to do about it; empty when all is well. */
  readonly remedy: string;
}

/** Makes findings of one area. */
export function findingsOf(area: Finding['area']) {
  return {
    ok: (what: string, value: string): Finding => ({
      area,
      what,
      value,
      severity: 'ok',
      remedy: '',
    }),
    warning: (what: string, value: string, remedy: string): Finding => ({
      area,
      what,
      value,
      severity: 'warning',
      remedy,
    }),
    wrong: (what: string, value: string, remedy: string): Finding => ({
      area,
      what,
      value,
      severity: 'wrong',
      remedy,
    }),
  };
}

/** For people: a table, remedies below it. */
export function findingsText(findings: readonly Finding[]): string {
  const rows = findings.map(({ area, what, value, severity }) => [severity, area, what, value]);
  const remedies = findings
    .filter(({ remedy }) => remedy !== '')
    .map(({ severity, what, remedy }) => `${severity}: ${what}: ${remedy}\n`);
  const table = textTable(['', 'area', 'what', 'found'], rows);
  return remedies.length === 0 ? table : `${table}\n${remedies.join('')}`;
}

/** The middle one of an odd number of measurements. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

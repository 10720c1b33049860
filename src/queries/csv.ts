// Results as CSV (RFC 4180), a line at a time. Not for: text tables, which are the command line's.
import type { JsonValue } from './values.ts';

/** One line of RFC 4180. Null is nothing, the empty text is `""`: the two stay different. */
export function csvLine(values: readonly JsonValue[]): string {
  return `${values.map(csvCell).join(',')}\r\n`;
}

function csvCell(value: JsonValue): string {
  if (value === null) return '';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

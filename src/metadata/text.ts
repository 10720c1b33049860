// Text of clients in a database's columns: Kafka's strings may hold U+0000, PostgreSQL refuses it, and node:sqlite reads no
// further than to there. An escape that nearly no text ever needs; equal texts stay equal, so names may be keys. Not for:
// JSON, which escapes it by itself.

const ESCAPE = '\u001b';

/** As it is stored. */
export function storedText(text: string): string {
  if (!text.includes('\0') && !text.includes(ESCAPE)) return text;
  return text.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll('\0', `${ESCAPE}0`);
}

/** The inverse of {@link storedText}. */
export function clientText(stored: string): string {
  if (!stored.includes(ESCAPE)) return stored;
  return stored.replaceAll(`${ESCAPE}0`, '\0').replaceAll(`${ESCAPE}1`, ESCAPE);
}

// What a record does to the table's rows: the one thing that a decoder says beside the row's cells.
// Append-only tables keep every change as a row and don't look; upserting ones resolve by it. Debezium's envelopes and
// a plain operation column (`table.topic.cdc.field`) name operations by the same words.
// Not for: which row is meant (the key), nor the order of changes.

/** Numbers, since one stands beside each row. */
export const CHANGE = { insert: 0, update: 1, delete: 2, truncate: 3 } as const;

/** insert and update both say "this is the row now"; truncate concerns all rows. */
export type ChangeKind = (typeof CHANGE)[keyof typeof CHANGE];

/** By first letter, case aside: Debezium's c, r, u, d, t; insert, create, read, update, delete, truncate in full. */
const KIND_BY_LETTER: Readonly<Record<string, ChangeKind>> = {
  c: CHANGE.insert,
  r: CHANGE.insert,
  i: CHANGE.insert,
  u: CHANGE.update,
  d: CHANGE.delete,
  t: CHANGE.truncate,
};

const kindByByte = new Int8Array(256).fill(-1);
for (const [letter, kind] of Object.entries(KIND_BY_LETTER)) {
  kindByByte[letter.charCodeAt(0)] = kind;
  kindByByte[letter.toUpperCase().charCodeAt(0)] = kind;
}

/** The operation that `bytes[start, end)` names by its first letter; undefined when it names none. */
export function changeKindOf(
  bytes: Uint8Array,
  start: number,
  end: number,
): ChangeKind | undefined {
  const kind = start < end ? kindByByte[bytes[start]!]! : -1;
  return kind < 0 ? undefined : (kind as ChangeKind);
}

/** What the last record is to the table; one object, rewritten for each. */
export class RowChange {
  kind: ChangeKind = CHANGE.insert;
  /**
   * False: the row's cells are all null (a truncate, or a delete whose source sent no former image). Which row a
   * delete means is then told by the record's key alone.
   */
  hasImage = true;
  /** Field ids of top-level columns whose value the source did not send: an upsert keeps the old cell. */
  readonly unavailable: number[] = [];

  /** A plain row: what records are that name no operation. */
  reset(): void {
    this.kind = CHANGE.insert;
    this.hasImage = true;
    this.unavailable.length = 0;
  }
}

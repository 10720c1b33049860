// Dead letters of table topics on PostgreSQL: offsets as runs, some thousands a row. Callers have locked the topic's
// record, so that nobody else changes its letters. Not for: what becomes one (table-topic/).
import { decodeRuns, encodeRuns } from '../offset-runs.ts';
import type { LetterPlace, OpenLetters, StagedLetters, StageRequest } from '../tables.ts';
import type { Sql, Transaction } from './database.ts';

/** Dead letters of one row: what is decoded to look at one of them. */
const LETTERS_PER_ROW = 4_096;

interface LetterRow {
  place: LetterPlace;
  partition_index: number;
  first_offset: number;
  last_offset: number;
  runs: Uint8Array;
}

/** Offsets of one partition. */
export interface LetterRange {
  readonly partition: number;
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

interface LetterPiece {
  readonly place: LetterPlace;
  readonly partition: number;
  /** Ascending, at least one. */
  readonly offsets: readonly number[];
}

function letterRows(sql: Sql, topicId: string, range: LetterRange): Promise<LetterRow[]> {
  return sql.rows<LetterRow>(
    `SELECT * FROM table_letters WHERE topic_id = $1 AND partition_index = $2
     AND last_offset >= $3 AND first_offset < $4 ORDER BY first_offset`,
    [topicId, range.partition, range.from, range.to],
  );
}

const offsetsOf = (row: LetterRow) => decodeRuns(row.runs, row.first_offset);

const spanOf = ({ partition, offsets }: StagedLetters): LetterRange => ({
  partition,
  from: offsets[0]!,
  to: offsets.at(-1)! + 1,
});

/** Ascending. */
export async function lettersIn(
  sql: Sql,
  topicId: string,
  range: LetterRange,
): Promise<readonly number[]> {
  const found = (await letterRows(sql, topicId, range))
    .flatMap(offsetsOf)
    .filter((offset) => offset >= range.from && offset < range.to);
  // Rows of a range that was staged again lie across those of before.
  return found.sort((a, b) => a - b);
}

/** True when a dead letter of the request is known already: its reader looked before that was so. */
export async function knowsLetters(
  tx: Transaction,
  { topicId, letters }: StageRequest,
): Promise<boolean> {
  for (const one of letters?.of ?? []) {
    if (one.offsets.length === 0) continue;
    const known = new Set(await lettersIn(tx, topicId, spanOf(one)));
    if (one.offsets.some((offset) => known.has(offset))) return true;
  }
  return false;
}

export async function addLetters(
  tx: Transaction,
  topicId: string,
  { place, of }: NonNullable<StageRequest['letters']>,
): Promise<void> {
  const pieces: LetterPiece[] = [];
  for (const { partition, offsets } of of) {
    for (let at = 0; at < offsets.length; at += LETTERS_PER_ROW) {
      pieces.push({ place, partition, offsets: offsets.slice(at, at + LETTERS_PER_ROW) });
    }
  }
  await putPieces(tx, topicId, pieces);
}

/** Forgets these; others of the same rows stay. */
export async function removeLetters(
  tx: Transaction,
  topicId: string,
  letters: StagedLetters,
): Promise<void> {
  if (letters.offsets.length === 0) return;
  const gone = new Set(letters.offsets);
  const rows = await letterRows(tx, topicId, spanOf(letters));
  await rewrite(tx, { topicId, rows, keeps: (_row, offset) => !gone.has(offset) });
}

/** Letters of dropped stages that would have gone into a table never got there; those of a topic did. */
export async function dropUncommittedLetters(
  tx: Transaction,
  topicId: string,
  committed: ReadonlyMap<number, number>,
): Promise<void> {
  const endOf = (row: LetterRow) => committed.get(row.partition_index) ?? 0;
  const rows = await tx.rows<LetterRow>(
    `SELECT * FROM table_letters WHERE topic_id = $1 AND place = 'table'`,
    [topicId],
  );
  await rewrite(tx, {
    topicId,
    rows: rows.filter((row) => row.last_offset >= endOf(row)),
    keeps: (row, offset) => offset < endOf(row),
  });
}

export async function openLetters(sql: Sql, topicId: string): Promise<readonly OpenLetters[]> {
  return sql.rows<OpenLetters>(
    `SELECT partition_index AS partition, sum(count) AS count, max(last_offset) + 1 AS end
     FROM table_letters WHERE topic_id = $1 GROUP BY partition_index ORDER BY partition_index`,
    [topicId],
  );
}

async function rewrite(
  tx: Transaction,
  work: {
    readonly topicId: string;
    readonly rows: readonly LetterRow[];
    readonly keeps: (row: LetterRow, offset: number) => boolean;
  },
): Promise<void> {
  const { topicId, rows, keeps } = work;
  if (rows.length === 0) return;
  await tx.run(
    `DELETE FROM table_letters l USING unnest($2::int4[], $3::int8[]) AS gone(partition_index, first_offset)
     WHERE l.topic_id = $1 AND l.partition_index = gone.partition_index AND l.first_offset = gone.first_offset`,
    [topicId, rows.map((row) => row.partition_index), rows.map((row) => row.first_offset)],
  );
  const kept = rows.map((row) => ({
    place: row.place,
    partition: row.partition_index,
    offsets: offsetsOf(row).filter((offset) => keeps(row, offset)),
  }));
  await putPieces(
    tx,
    topicId,
    kept.filter(({ offsets }) => offsets.length > 0),
  );
}

async function putPieces(
  tx: Transaction,
  topicId: string,
  pieces: readonly LetterPiece[],
): Promise<void> {
  if (pieces.length === 0) return;
  await tx.run(
    `INSERT INTO table_letters SELECT $1, * FROM unnest(
       $2::int4[], $3::int8[], $4::int8[], $5::text[], $6::int4[], $7::bytea[])`,
    [
      topicId,
      pieces.map(({ partition }) => partition),
      pieces.map(({ offsets }) => offsets[0]!),
      pieces.map(({ offsets }) => offsets.at(-1)!),
      pieces.map(({ place }) => place),
      pieces.map(({ offsets }) => offsets.length),
      pieces.map(({ offsets }) => encodeRuns(offsets, offsets[0]!)),
    ],
  );
}

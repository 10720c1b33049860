// The checker: what clients saw, held against each other and against the log and the table in the end. Pure.
// I1 no acknowledged record is lost; I2 none is there twice; I7 no aborted record is given to anybody; I8 one offset has
// one value for ever; I9 no error that a client can't act on; I12 polls neither go back nor skip; and transactions are
// whole. (I3, I5: run.ts waits for every client with a bound. I4, I6, I10, I11 show as one of these.)
import type { Entry, History } from './history.ts';

/** Records by partition and offset, as a reader of committed records finds them once everything is at rest. */
export type Scan = ReadonlyMap<number, ReadonlyMap<number, string>>;

export interface Evidence {
  readonly histories: readonly History[];
  readonly committed: Scan;
  readonly uncommitted: Scan;
  /** Rows of the table, by partition and offset; values as in the log. */
  readonly table: readonly (readonly [number, number, string])[];
}

export interface Findings {
  readonly faults: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

interface Fate {
  readonly txn: string | undefined;
  acked: { readonly partition: number; readonly offset: number } | undefined;
}

type TxnOutcome = 'open' | 'unknown' | 'committed' | 'aborted';

export function check({ histories, committed, uncommitted, table }: Evidence): Findings {
  const faults: string[] = [];
  const fates = new Map<string, Fate>();
  const outcomes = new Map<string, TxnOutcome>();
  for (const { entries } of histories)
    for (const entry of entries) note(entry, { fates, outcomes });
  const where = positions(committed, faults);
  const all = positions(uncommitted, faults);
  for (const [value, fate] of fates) checkFate(value, fate, { where, all, outcomes, faults });
  for (const value of where.keys())
    if (!fates.has(value)) faults.push(`I11: ${value} was read and never sent`);
  checkWhole(fates, { where, outcomes, faults });
  for (const history of histories)
    checkPolls(history, { committed, uncommitted, fates, outcomes, faults });
  checkErrors(histories, faults);
  checkTable(table, committed, faults);
  return { faults, counts: countsOf({ histories, fates, outcomes, where, table }) };
}

interface Notes {
  readonly fates: Map<string, Fate>;
  readonly outcomes: Map<string, TxnOutcome>;
}

function note(entry: Entry, { fates, outcomes }: Notes): void {
  switch (entry.op) {
    case 'send':
      if (entry.txn !== undefined && !outcomes.has(entry.txn)) outcomes.set(entry.txn, 'open');
      for (const value of entry.values) fates.set(value, { txn: entry.txn, acked: undefined });
      break;
    case 'acked':
      for (const [n, value] of entry.values.entries()) {
        const offset = entry.offset < 0 ? -1 : entry.offset + n;
        fates.get(value)!.acked = { partition: entry.partition, offset };
      }
      break;
    case 'committing':
      outcomes.set(entry.txn, 'unknown');
      break;
    case 'committed':
    case 'aborted':
      outcomes.set(entry.txn, entry.op);
      break;
    default:
  }
}

/** Where each value is; twice is I2. */
function positions(scan: Scan, faults: string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const [partition, records] of scan)
    for (const [offset, value] of records) {
      const at = `${partition}@${offset}`;
      const other = found.get(value);
      if (other !== undefined) faults.push(`I2: ${value} is at ${other} and at ${at}`);
      found.set(value, at);
    }
  return found;
}

interface Verdict {
  readonly where: ReadonlyMap<string, string>;
  readonly outcomes: ReadonlyMap<string, TxnOutcome>;
  readonly faults: string[];
}

function checkFate(
  value: string,
  { txn, acked }: Fate,
  { where, all, outcomes, faults }: Verdict & { readonly all: ReadonlyMap<string, string> },
): void {
  const outcome = txn === undefined ? 'committed' : outcomes.get(txn)!;
  const at = where.get(value);
  // A transaction that was never asked to commit is aborted by its timeout or its producer's next life.
  if ((outcome === 'aborted' || outcome === 'open') && at !== undefined)
    faults.push(`I7: ${value} of ${txn}, which was not committed, is at ${at}`);
  if (acked === undefined) return;
  if (outcome === 'committed' && at === undefined)
    faults.push(`I1: ${value} was acknowledged and is lost`);
  const expected = `${acked.partition}@${acked.offset}`;
  const actual = at ?? all.get(value);
  if (acked.offset >= 0 && actual !== undefined && actual !== expected)
    faults.push(`I2: ${value} was acknowledged at ${expected} and is at ${actual}`);
}

/** All of a transaction, or nothing. */
function checkWhole(fates: ReadonlyMap<string, Fate>, { where, outcomes, faults }: Verdict): void {
  const seen = new Map<string, { present: number; missing: string[] }>();
  for (const [value, { txn, acked }] of fates) {
    if (txn === undefined) continue;
    const parts = seen.get(txn) ?? { present: 0, missing: [] };
    seen.set(txn, parts);
    if (where.has(value)) parts.present += 1;
    else if (acked !== undefined) parts.missing.push(value);
  }
  for (const [txn, { present, missing }] of seen)
    if (present > 0 && missing.length > 0)
      faults.push(
        `torn: ${txn} (${outcomes.get(txn)}) has ${present} records, and ${missing[0]} is missing`,
      );
}

interface PollVerdict extends Omit<Verdict, 'where'> {
  readonly committed: Scan;
  readonly uncommitted: Scan;
  readonly fates: ReadonlyMap<string, Fate>;
}

/** I7, I8, I12. A member of a group begins anew with each stay (and reads what isn't committed too), a reader with each life. */
function checkPolls(
  { who, entries }: History,
  { committed, uncommitted, fates, outcomes, faults }: PollVerdict,
): void {
  let last = new Map<number, number>();
  const member = entries.some(({ op }) => op === 'joined');
  const scanned = member ? uncommitted : committed;
  for (const entry of entries) {
    if (entry.op === 'joined' || entry.op === 'began') last = new Map();
    if (entry.op !== 'polled') continue;
    const { partition } = entry;
    const records = scanned.get(partition)!;
    for (const [offset, value] of entry.records) {
      const before = last.get(partition);
      if (before !== undefined && offset <= before)
        faults.push(`I12: ${who} polled ${partition}@${offset} after ${before}`);
      for (let skipped = (before ?? offset) + 1; skipped < offset; skipped += 1)
        if (records.has(skipped)) faults.push(`I12: ${who} skipped ${partition}@${skipped}`);
      last.set(partition, offset);
      const final = records.get(offset);
      if (final !== value)
        faults.push(
          `I8: ${who} polled ${value} at ${partition}@${offset}, where ${final ?? 'nothing'} is`,
        );
      const txn = fates.get(value)?.txn;
      if (!member && txn !== undefined && outcomes.get(txn) === 'aborted')
        faults.push(`I7: ${who} polled ${value} of ${txn}, which was aborted`);
    }
  }
}

/** I9: UNKNOWN_SERVER_ERROR tells a client neither to try again nor not to. */
function checkErrors(histories: readonly History[], faults: string[]): void {
  for (const { who, entries } of histories)
    for (const entry of entries)
      if (entry.op === 'error' && /^(UNKNOWN|UNKNOWN_SERVER_ERROR)$/.test(entry.type))
        faults.push(`I9: ${who} got ${entry.type} while it ${entry.doing}: ${entry.message}`);
}

/** The table holds what readers of committed records get, and nothing else. */
function checkTable(table: Evidence['table'], committed: Scan, faults: string[]): void {
  const rows = new Set<string>();
  for (const [partition, offset, value] of table) {
    const at = `${partition}@${offset}`;
    if (rows.has(at)) faults.push(`table: ${at} is a row twice`);
    rows.add(at);
    const expected = committed.get(partition)?.get(offset);
    if (expected !== value)
      faults.push(`table: ${at} is ${value}, in the log ${expected ?? 'nothing'}`);
  }
  for (const [partition, records] of committed)
    for (const offset of records.keys())
      if (!rows.has(`${partition}@${offset}`))
        faults.push(`table: ${partition}@${offset} has no row`);
}

function countsOf({
  histories,
  fates,
  outcomes,
  where,
  table,
}: Pick<Evidence, 'histories' | 'table'> & Notes & Pick<Verdict, 'where'>) {
  const of = (wanted: TxnOutcome) => [...outcomes.values()].filter((one) => one === wanted).length;
  let polled = 0;
  let errors = 0;
  for (const { entries } of histories)
    for (const entry of entries) {
      if (entry.op === 'polled') polled += entry.records.length;
      if (entry.op === 'error') errors += 1;
    }
  return {
    sent: fates.size,
    acknowledged: [...fates.values()].filter(({ acked }) => acked !== undefined).length,
    committedTransactions: of('committed'),
    abortedTransactions: of('aborted'),
    unknownTransactions: of('unknown') + of('open'),
    visible: where.size,
    polled,
    rows: table.length,
    errors,
  };
}

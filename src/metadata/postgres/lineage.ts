// Whether the database still goes on from where this process knows it to have been. Brokers that share a database restored
// to an earlier time, or failed over to a standby that lacked commits, would give offsets a second time that clients
// have records of. So a process remembers the newest commit it has seen, by number and time, and looks for it on every new
// connection (no server goes back in time without breaking them) and whenever it follows. What it doesn't find there it
// writes down: from then on a trigger refuses every commit, of this broker and of those that never knew, until an operator
// has said `floe restore --in-place`. A broker that ran through such a restore learns by its number that it must start anew.
// Not for: what a restore does (cli/backup).
import { FloeError } from '../../base/error.ts';

/** SQLSTATE of a commit that the trigger refuses. */
export const CONTRADICTED = 'FL001';

/** What a store says of itself; `knownMs`: when the commit asked about was, null where its row isn't kept. */
export interface StoreFacts {
  readonly last_commit: number;
  readonly contradiction: string | null;
  readonly restores: number;
  readonly known_ms: number | null;
}

/** Of `log_counter c`, about the commit whose number is the parameter. */
export const factsColumns = (parameter: string): string => `c.last_commit, c.contradiction,
    (SELECT restores FROM cluster) AS restores,
    (SELECT committed_ms FROM flushes WHERE commit_number = ${parameter}::int8) AS known_ms`;

const FACTS = `SELECT ${factsColumns('$1')} FROM log_counter c`;
const MARK = 'UPDATE log_counter SET contradiction = $1 WHERE contradiction IS NULL';

export interface Known {
  readonly commitNumber: number;
  /** By the store's clock; undefined when only the number is known. */
  readonly committedMs: number | undefined;
}

/** Whatever runs a statement. */
export type Ask = <Row>(text: string, values: readonly (string | number)[]) => Promise<Row[]>;

export class Lineage {
  #known: Known | undefined;
  #restores: number | undefined;

  /** The newest commit seen here; number 0 before any. */
  get known(): Known {
    return this.#known ?? { commitNumber: 0, committedMs: undefined };
  }

  /** This process begins with what the store holds now. @throws FloeError `corrupt`: nobody may. */
  begin({
    last_commit: commitNumber,
    contradiction,
    restores,
  }: Omit<StoreFacts, 'known_ms'>): void {
    if (contradiction !== null) throw contradicted(contradiction);
    this.#restores = restores;
    this.#known = { commitNumber, committedMs: undefined };
  }

  /** As a process that has seen nothing. */
  forget(): void {
    this.#known = undefined;
    this.#restores = undefined;
  }

  noted(commitNumber: number, committedMs: number): void {
    const { commitNumber: before, committedMs: time } = this.known;
    if (commitNumber > before || (commitNumber === before && time === undefined))
      this.#known = { commitNumber, committedMs };
  }

  /** Of a new connection. @throws as {@link judge}. */
  async check(ask: Ask): Promise<void> {
    if (this.#known === undefined) return;
    const known = this.#known;
    const [facts] = await ask<StoreFacts>(FACTS, [known.commitNumber]);
    await this.judge(known, facts!, ask);
  }

  /**
   * Holds `facts` against what was `known` before they were asked for.
   * @throws FloeError `corrupt`: this broker must not go on.
   */
  async judge(known: Known, facts: StoreFacts, ask: Ask): Promise<void> {
    if (this.#restores !== undefined && facts.restores !== this.#restores)
      throw new FloeError(
        'corrupt',
        'the metadata was restored while this broker ran: it must start again',
      );
    if (facts.contradiction !== null) throw contradicted(facts.contradiction);
    const text = contradictionOf(known, facts);
    if (text === undefined) return;
    await ask(MARK, [text]);
    throw contradicted(text);
  }
}

/** Pure: what `known` proves about a store that says `facts`; undefined: nothing. */
export function contradictionOf(
  { commitNumber, committedMs }: Known,
  { last_commit: last, known_ms: knownMs }: Pick<StoreFacts, 'last_commit' | 'known_ms'>,
): string | undefined {
  if (last < commitNumber)
    return `commit ${commitNumber} was made, and the newest is ${last}: ${commitNumber - last} commits are lost`;
  if (committedMs === undefined || knownMs === null || knownMs === committedMs) return undefined;
  return `commit ${commitNumber} was made at ${committedMs}, and one of that number at ${knownMs}: commits were lost and others made in their place`;
}

/** What an operator does about a database that was put back. */
export const PUT_BACK_REMEDY =
  'stop all brokers, bring back a newer state if there is one, then run floe restore --in-place';

function contradicted(text: string): FloeError {
  return new FloeError(
    'corrupt',
    `the database was put back to an earlier time (${text}). Offsets would be given twice, so nothing is committed: ${PUT_BACK_REMEDY} (docs/operations/disaster.md)`,
  );
}

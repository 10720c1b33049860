// What a client of the consistency workload saw, one JSON line an entry, written before the next thing is done: a client
// that is killed has told everything. Read back whole by the checker.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** Values are unique texts. `offset`: of the first, −1 while it isn't known. */
export interface Sent {
  readonly partition: number;
  readonly values: readonly string[];
  readonly offset: number;
}

export type Entry =
  /** About to send. `txn`: the transaction it is part of. */
  | {
      readonly op: 'send';
      readonly txn?: string;
      readonly partition: number;
      readonly values: readonly string[];
    }
  /** Acknowledged. */
  | ({ readonly op: 'acked' } & Sent)
  /** `committing` comes before the request: without an `end` nobody knows. */
  | { readonly op: 'committing' | 'committed' | 'aborted'; readonly txn: string }
  /** A consumer's positions are what its group had committed. */
  | { readonly op: 'joined' }
  /** A reader begins at the start: it keeps its positions in memory and was killed, or never ran. */
  | { readonly op: 'began' }
  | {
      readonly op: 'polled';
      readonly partition: number;
      readonly records: readonly (readonly [number, string])[];
    }
  | {
      readonly op: 'error';
      readonly doing: string;
      readonly type: string;
      readonly message: string;
    };

/** Who wrote what. */
export interface History {
  readonly who: string;
  readonly entries: readonly Entry[];
}

export function recorder(file: string): (entry: Entry) => void {
  return (entry) => appendFileSync(file, `${JSON.stringify(entry)}\n`);
}

/** A line that was being written when the client was killed is left out; so is one who never got to write. */
export function readHistory(who: string, file: string): History {
  if (!existsSync(file)) return { who, entries: [] };
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return { who, entries: lines.map((line) => JSON.parse(line) as Entry) };
}

// Waits until a table holds what was produced: for the demo, the kill test, the oracles and the consistency workload.
import { setTimeout as sleep } from 'node:timers/promises';
import { FloeError } from '../base/error.ts';
import type { TableStatus } from '../table-topic/index.ts';
import { call } from './http-client.ts';

/** Between two looks at the status. */
const LOOK_MS = 50;

export interface AwaitRows {
  /** The HTTP address, HOST:PORT. */
  readonly server: string;
  readonly topic: string;
  readonly rows: number;
  readonly timeoutMs?: number;
}

/**
 * Resolves once the topic's table has committed `rows` rows and everything else its topic holds. A table in trouble tries again by itself, so it is waited
 * for like any other. @throws FloeError `timeout` with what the table says of itself.
 */
export async function awaitRows({
  server,
  topic,
  rows,
  timeoutMs = 60_000,
}: AwaitRows): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const response = await call({ server, path: `/v1/tables/${topic}` });
    const { state, reason, lagRecords, counters } = (await response.json()) as TableStatus;
    // Rows count when they are staged; what is committed shows in the lag.
    if (counters.rows >= rows && lagRecords === 0 && state === 'running') return;
    if (performance.now() > deadline) {
      const why = reason === '' ? '' : ` (${reason})`;
      throw new FloeError(
        'timeout',
        `table of ${topic}: ${counters.rows} of ${rows} rows after ${timeoutMs} ms; it is ${state}${why}, ${lagRecords} records behind`,
      );
    }
    await sleep(LOOK_MS);
  }
}

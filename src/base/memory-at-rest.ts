// Gives memory back once the process has come to rest. V8 collects what has grown old when there is more of it by so much: a
// process that does nothing adds nothing, and what a busy hour left behind would stay (decision 0017).
// Not for: memory of other threads, and collecting while there is work.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from './clock.ts';

const LOOK_MS = 5_000;
/** At rest, the event loop is at work for less than this share of its time. */
const REST_SHARE = 0.05;

export interface RestOptions {
  readonly clock: Pick<Clock, 'setTimer'>;
  /** Share of the time since the last call that the event loop was at work. */
  utilization(): number;
  collect(): void;
}

/** Collects once whenever work has ended. Goes on as long as the process does, and never keeps it alive. */
export function collectAtRest(options: RestOptions): void {
  const { clock, utilization, collect } = options;
  let worked = true;
  const look = () => {
    const rests = utilization() < REST_SHARE;
    if (rests && worked) collect();
    worked = !rests;
    clock.setTimer(LOOK_MS, look);
  };
  clock.setTimer(LOOK_MS, look);
}

/** Of this thread's event loop. */
export function loopUtilization(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}

/** Collects all garbage of this thread at once, and gives its pages back to the system: some hundredths of a second. */
export function collector(): () => void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as (how: object) => void;
  setFlagsFromString('--no-expose-gc');
  return () => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

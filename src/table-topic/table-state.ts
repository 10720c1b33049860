// The states of one table and every step between them, as a total table: SPEC.md says what each means.
// Pure. Time, retries and work are the coordinator's.

export type TableState =
  /** Looking the table up, or trying again after trouble. */
  | 'starting'
  /** There is no table yet, and only records will tell its columns. */
  | 'waiting'
  /** Reading, staging, committing. */
  | 'running'
  /** An operator said so. */
  | 'paused'
  /** In trouble, with a reason; tries again by itself. */
  | 'suspended'
  /** Finishing what is under way. */
  | 'stopping'
  /** Done; nothing runs. */
  | 'stopped'
  /** Another coordinator took over: for this process, done. */
  | 'fenced';

export type TableEvent =
  /** The table is there and its position known. */
  | 'opened'
  /** It isn't, and its columns aren't known yet. */
  | 'no-columns'
  /** Something failed that needs a remedy or time. */
  | 'trouble'
  /** The delay after trouble is over, or the config changed. */
  | 'retry'
  | 'pause'
  | 'resume'
  /** A higher epoch was seen. */
  | 'fenced'
  /** The topic was deleted, disabled, or the process stops. */
  | 'stop'
  | 'stopped';

export const TABLE_STATES = [
  'starting',
  'waiting',
  'running',
  'paused',
  'suspended',
  'stopping',
  'stopped',
  'fenced',
] as const satisfies readonly TableState[];

export const TABLE_EVENTS = [
  'opened',
  'no-columns',
  'trouble',
  'retry',
  'pause',
  'resume',
  'fenced',
  'stop',
  'stopped',
] as const satisfies readonly TableEvent[];

type Row = Readonly<Record<TableEvent, TableState>>;

/** Once left for good, a table stays there whatever comes late. */
const ended = (state: TableState): Row => ({
  opened: state,
  'no-columns': state,
  trouble: state,
  retry: state,
  pause: state,
  resume: state,
  fenced: state,
  stop: state,
  stopped: state,
});

const alive = {
  opened: 'running',
  'no-columns': 'waiting',
  trouble: 'suspended',
  retry: 'starting',
  pause: 'paused',
  fenced: 'fenced',
  stop: 'stopping',
  stopped: 'stopped',
} as const;

export const TRANSITIONS: Readonly<Record<TableState, Row>> = {
  starting: { ...alive, retry: 'starting', resume: 'starting' },
  waiting: { ...alive, resume: 'waiting' },
  running: { ...alive, resume: 'running' },
  // Late results of work that was under way don't lift a pause.
  paused: {
    ...alive,
    opened: 'paused',
    'no-columns': 'paused',
    trouble: 'paused',
    retry: 'paused',
    resume: 'starting',
  },
  // A late success of one lane isn't a cure of what another met; only a retry looks again.
  suspended: {
    ...alive,
    opened: 'suspended',
    'no-columns': 'suspended',
    resume: 'starting',
  },
  stopping: { ...ended('stopping'), fenced: 'stopping', stopped: 'stopped' },
  stopped: ended('stopped'),
  fenced: { ...ended('fenced'), stopped: 'stopped' },
};

export function nextState(state: TableState, event: TableEvent): TableState {
  return TRANSITIONS[state][event];
}

/** Records may be read and staged. */
export const mayStage = (state: TableState): boolean => state === 'running' || state === 'waiting';

/** What is staged may be committed. */
export const mayCommit = (state: TableState): boolean =>
  state === 'running' || state === 'stopping';

// The state machine: one event in, effects out. No I/O, no clock, no ids of its own.
// TRANSITIONS is SPEC.md's table as data; every step is held against it (G7).
import { assert, unreachable } from '../../../base/assert.ts';
import type { GroupSettings } from '../settings.ts';
import type { Effect } from './effects.ts';
import { assertGroup, enter, type Group, type GroupState } from './group.ts';
import { type JoinEvent, onJoin } from './join.ts';
import {
  type HeartbeatEvent,
  type LeaveEvent,
  onHeartbeat,
  onLeave,
  onTick,
  type TickEvent,
} from './membership.ts';
import { prepareRebalance, type StepContext } from './rebalance.ts';
import { onPersisted, onSync, type PersistedEvent, type SyncEvent } from './sync.ts';

/** All are to join anew; sent to a group that has just been a consumer group. */
interface RebalanceEvent {
  readonly type: 'rebalance';
}

/** The group was deleted or has expired: only ever sent to an empty one. */
interface EndEvent {
  readonly type: 'end';
}

export type GroupEvent =
  | JoinEvent
  | SyncEvent
  | HeartbeatEvent
  | LeaveEvent
  | PersistedEvent
  | TickEvent
  | RebalanceEvent
  | EndEvent;

const E = 'Empty';
const P = 'PreparingRebalance';
const C = 'CompletingRebalance';
const S = 'Stable';
const D = 'Dead';

/** Per state and event the states it may lead to. */
export const TRANSITIONS: Record<GroupState, Record<GroupEvent['type'], readonly GroupState[]>> = {
  Empty: {
    join: [E, P, C],
    sync: [E],
    heartbeat: [E],
    leave: [E],
    persisted: [E],
    tick: [E],
    rebalance: [],
    end: [D],
  },
  PreparingRebalance: {
    join: [P, C],
    sync: [P],
    heartbeat: [P],
    leave: [P, C, E],
    persisted: [P],
    tick: [P, C, E],
    rebalance: [],
    end: [],
  },
  CompletingRebalance: {
    join: [C, P],
    sync: [C, P, E],
    heartbeat: [C],
    leave: [C, P, E],
    persisted: [C, S, P, E],
    tick: [C, P, E],
    rebalance: [],
    end: [],
  },
  Stable: {
    join: [S, P, C],
    sync: [S],
    heartbeat: [S],
    leave: [S, P, E],
    persisted: [S],
    tick: [S, P, E],
    rebalance: [P],
    end: [],
  },
  Dead: {
    join: [D],
    sync: [D],
    heartbeat: [D],
    leave: [D],
    persisted: [D],
    tick: [D],
    rebalance: [],
    end: [D],
  },
};

/** Changes `group` by one event at time `now` (milliseconds) and says what to do about it, in order. */
export function step(
  group: Group,
  event: GroupEvent,
  { now, settings }: { readonly now: number; readonly settings: GroupSettings },
): readonly Effect[] {
  const { state: before } = group;
  const effects: Effect[] = [];
  dispatch(group, event, { now, settings, effects });
  assert(
    TRANSITIONS[before][event.type].includes(group.state),
    `G7: ${before} may become ${group.state} by ${event.type}`,
  );
  assertGroup(group);
  return effects;
}

function dispatch(group: Group, event: GroupEvent, context: StepContext): void {
  switch (event.type) {
    case 'join':
      onJoin(group, event, context);
      break;
    case 'sync':
      onSync(group, event, context);
      break;
    case 'heartbeat':
      onHeartbeat(group, event, context);
      break;
    case 'leave':
      onLeave(group, event, context);
      break;
    case 'persisted':
      onPersisted(group, event, context);
      break;
    case 'tick':
      onTick(group, context);
      break;
    case 'rebalance':
      prepareRebalance(group, context);
      break;
    case 'end':
      enter(group, 'Dead', context.now);
      break;
    default:
      unreachable(event, 'group event');
  }
}

// The state machine of consumer groups: one event in, its answer out. No I/O, no clock, no ids of its own.
// Every event is answered at once, so nobody waits here; the caller keeps an answer back until the change is stored.
// TRANSITIONS is SPEC.md's table as data; every step is held against it (K7).
import { assert } from '../../../base/assert.ts';
import {
  type ClassicHeartbeat,
  type ClassicJoin,
  type ClassicJoined,
  type ClassicLeave,
  type ClassicSync,
  type ClassicSynced,
  onClassicHeartbeat,
  onClassicJoin,
  onClassicLeave,
  onClassicSync,
} from './classic-members.ts';
import {
  assertConsumerGroup,
  type ConsumerGroup,
  type ConsumerGroupState,
  consumerGroupState,
  memberDeadline,
} from './group.ts';
import {
  type ConsumerContext,
  type ConsumerHeartbeat,
  type ConsumerLeave,
  fence,
  type HeartbeatReply,
  onHeartbeat,
  onLeave,
} from './heartbeat.ts';

/** Ends what is overdue: sessions, and the times for giving up, joining again, syncing. */
interface TickEvent {
  readonly type: 'tick';
}

/** The group was deleted or has expired: only ever sent to an empty one. */
interface EndEvent {
  readonly type: 'end';
}

export type ConsumerEvent =
  | ConsumerHeartbeat
  | ConsumerLeave
  | ClassicJoin
  | ClassicSync
  | ClassicHeartbeat
  | ClassicLeave
  | TickEvent
  | EndEvent;

interface Answers {
  readonly heartbeat: HeartbeatReply;
  readonly leave: HeartbeatReply;
  readonly 'classic-join': ClassicJoined;
  readonly 'classic-sync': ClassicSynced;
  readonly 'classic-heartbeat': number;
  readonly 'classic-leave': readonly number[];
  readonly tick: undefined;
  readonly end: undefined;
}

/** What an event of a type is answered with. */
export type ConsumerAnswer<T extends ConsumerEvent['type']> = Answers[T];

const E = 'Empty';
const A = 'Assigning';
const R = 'Reconciling';
const S = 'Stable';
const D = 'Dead';

/** Per state and event the states it may lead to. */
export const CONSUMER_TRANSITIONS: Record<
  ConsumerGroupState,
  Record<ConsumerEvent['type'], readonly ConsumerGroupState[]>
> = {
  Empty: {
    heartbeat: [E, R, S],
    leave: [E],
    'classic-join': [E, R, S],
    'classic-sync': [E],
    'classic-heartbeat': [E],
    'classic-leave': [E],
    tick: [E],
    end: [D],
  },
  Assigning: {
    heartbeat: [A, R, S],
    leave: [A, E],
    'classic-join': [A, R, S],
    'classic-sync': [A],
    'classic-heartbeat': [A],
    'classic-leave': [A, E],
    tick: [A, E],
    end: [],
  },
  Reconciling: {
    heartbeat: [R, S],
    leave: [R, A, E],
    'classic-join': [R, S],
    'classic-sync': [R],
    'classic-heartbeat': [R],
    'classic-leave': [R, A, E],
    tick: [R, A, E],
    end: [],
  },
  Stable: {
    heartbeat: [S, R],
    leave: [S, R, A, E],
    'classic-join': [S, R],
    'classic-sync': [S],
    'classic-heartbeat': [S],
    'classic-leave': [S, A, E],
    tick: [S, A, E],
    end: [],
  },
  Dead: {
    heartbeat: [],
    leave: [],
    'classic-join': [],
    'classic-sync': [],
    'classic-heartbeat': [],
    'classic-leave': [],
    tick: [D],
    end: [D],
  },
};

/** Changes `group` by one event and answers it. What is to be stored is in `group.unsaved` afterwards. */
export function consumerStep<E extends ConsumerEvent>(
  group: ConsumerGroup,
  event: E,
  context: ConsumerContext,
): ConsumerAnswer<E['type']> {
  const before = consumerGroupState(group);
  const answer = dispatch(group, event, context);
  const after = consumerGroupState(group);
  assert(
    CONSUMER_TRANSITIONS[before][event.type].includes(after),
    `K7: ${before} may become ${after} by ${event.type}`,
  );
  assertConsumerGroup(group);
  return answer as ConsumerAnswer<E['type']>;
}

function dispatch(group: ConsumerGroup, event: ConsumerEvent, context: ConsumerContext): unknown {
  switch (event.type) {
    case 'heartbeat':
      return onHeartbeat(group, event, context);
    case 'leave':
      return onLeave(group, event, context);
    case 'classic-join':
      return onClassicJoin(group, event, context);
    case 'classic-sync':
      return onClassicSync(group, event, context);
    case 'classic-heartbeat':
      return onClassicHeartbeat(group, event, context);
    case 'classic-leave':
      return onClassicLeave(group, event, context);
    case 'tick':
      for (const member of [...group.members.values()])
        if (memberDeadline(member) <= context.now) fence(group, member, context.now);
      return undefined;
    case 'end':
      group.dead = true;
      return undefined;
  }
}

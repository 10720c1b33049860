// Runs consumer groups: an event changes the group at once, its answer is kept back until the store has the change (K8).
// A change that could not be stored stays in memory and is written whole with the next event: its answer was never
// given, so nobody acts on it before. Not for: which group, offsets, the lease (coordinator.ts).
import type { GroupChange } from '../../../metadata/groups.ts';
import type { Deadlines } from '../deadlines.ts';
import { type Entry, storeFault } from '../entry.ts';
import type { ChangeWriter } from '../writer.ts';
import { type ConsumerGroup, nextConsumerDeadline, takeUnsaved } from './group.ts';
import type { ConsumerGroupConfig } from './heartbeat.ts';
import { type ConsumerAnswer, type ConsumerEvent, consumerStep } from './step.ts';
import type { TopicView } from './topics.ts';

export interface ConsumerRunnerOptions {
  readonly writer: ChangeWriter;
  readonly deadlines: Deadlines;
  readonly topics: TopicView;
  configOf(groupId: string): ConsumerGroupConfig;
  now(): number;
  /** Called after each event, before anything is stored; may give the entry another group. */
  stepped(entry: Entry, event: ConsumerEvent, newEpoch: boolean): void;
}

/** An answer, or the error code of a change that could not be stored. */
export type Answered<T extends ConsumerEvent['type']> =
  | { readonly answer: ConsumerAnswer<T>; readonly errorCode: 0 }
  | { readonly errorCode: number };

export class ConsumerGroups {
  readonly #options: ConsumerRunnerOptions;

  constructor(options: ConsumerRunnerOptions) {
    this.#options = options;
  }

  async ask<E extends ConsumerEvent>(entry: Entry, event: E): Promise<Answered<E['type']>> {
    const group = entry.group as ConsumerGroup;
    const answer = this.#step(entry, group, event);
    const errorCode = await (entry.saving ?? 0);
    if (errorCode === 0) return { answer, errorCode };
    if ('memberId' in event) {
      const member = group.members.get(event.memberId);
      if (member !== undefined) member.untold = true;
    }
    return { errorCode };
  }

  /** For events that nobody waits for. */
  tick(entry: Entry): void {
    this.#step(entry, entry.group as ConsumerGroup, { type: 'tick' });
  }

  end(entry: Entry): void {
    this.#step(entry, entry.group as ConsumerGroup, { type: 'end' });
  }

  schedule(group: ConsumerGroup): void {
    this.#options.deadlines.set(group.groupId, nextConsumerDeadline(group));
  }

  /** Sends a change to the store; answers from now on wait for it. */
  save(entry: Entry, change: GroupChange): void {
    const { group, held } = entry;
    const saving = this.#options.writer.write(held, change).then(({ error }) => {
      if (entry.saving === saving) entry.saving = undefined;
      if (error === undefined) return 0;
      if (group.kind === 'consumer') group.unsaved.whole = true;
      return storeFault(error);
    });
    entry.saving = saving;
  }

  #step<E extends ConsumerEvent>(
    entry: Entry,
    group: ConsumerGroup,
    event: E,
  ): ConsumerAnswer<E['type']> {
    const { configOf, now, topics, stepped } = this.#options;
    const before = group.epoch;
    const config = configOf(group.groupId);
    const answer = consumerStep(group, event, { now: now(), topics, config });
    stepped(entry, event, group.epoch !== before);
    if (entry.group !== group || group.dead) return answer;
    const change = takeUnsaved(group);
    if (change !== undefined) this.save(entry, change);
    // A sign of life that changes nothing only moves a deadline away.
    if (event.type !== 'heartbeat' || change !== undefined) this.schedule(group);
    return answer;
  }
}

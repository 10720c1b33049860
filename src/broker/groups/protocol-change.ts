// Groups change their protocol while their members go on (KIP-848): when, and what happens to those who wait.
// Not for: what becomes of a group's state (migration.ts, pure).
import { assert } from '../../base/assert.ts';
import type { Logger } from '../../base/log.ts';
import { newGroup, restoreGroup } from './classic/group.ts';
import type { ClassicGroups } from './classic/runner.ts';
import { type ConsumerGroup, newConsumerGroup, restoreConsumerGroup } from './consumer/group.ts';
import type { ConsumerGroupConfig } from './consumer/heartbeat.ts';
import type { ConsumerGroups } from './consumer/runner.ts';
import type { ConsumerEvent } from './consumer/step.ts';
import type { TopicView } from './consumer/topics.ts';
import type { Entry } from './entry.ts';
import {
  isSettled,
  mayDowngrade,
  toClassicGroup,
  toConsumerGroup,
  upgradeFault,
} from './migration.ts';
import type { GroupSettings } from './settings.ts';

export interface ProtocolChangeOptions {
  readonly settings: GroupSettings;
  readonly logger: Logger;
  readonly topics: TopicView;
  readonly classic: ClassicGroups;
  readonly consumer: ConsumerGroups;
  now(): number;
  /** Topic and index of a partition; undefined once it is deleted. */
  nameOf(partitionId: number): readonly [string, number] | undefined;
  configOf(groupId: string): ConsumerGroupConfig;
}

export class ProtocolChange {
  readonly #options: ProtocolChangeOptions;

  constructor(options: ProtocolChangeOptions) {
    this.#options = options;
  }

  /** Makes the classic group a consumer group with the same members. Returns why not, for people, if not. */
  upgrade(entry: Entry): string | undefined {
    const { group } = entry;
    assert(group.kind === 'classic', 'only classic groups are upgraded');
    const { settings, topics, classic, logger, now, configOf } = this.#options;
    if (group.state === 'Empty') {
      entry.group = newConsumerGroup(group.groupId, now());
      return undefined;
    }
    const policy = settings['group.consumer.migration.policy'];
    const why = upgradeFault(group, { policy, maxSize: settings['group.consumer.max.size'] });
    if (why !== undefined) return why;
    const stored = toConsumerGroup(group, { topics, now: now() });
    if (stored === undefined) return 'its members do not speak the consumer protocol properly';
    classic.abandon(group);
    const { sessionTimeoutMs } = configOf(group.groupId);
    const upgraded = restoreConsumerGroup(stored, { now: now(), sessionTimeoutMs });
    upgraded.unsaved.whole = true;
    entry.group = upgraded;
    logger.info({ group: group.groupId }, 'the group speaks the consumer protocol now');
    return undefined;
  }

  /** An empty consumer group begins anew as a classic one; what it had goes with its first generation. */
  startClassic(entry: Entry): void {
    entry.group = newGroup(entry.group.groupId, this.#options.now());
  }

  /** Called after each event: where only members of the classic protocol are left, they go on by themselves. */
  maybeDowngrade(entry: Entry, event: ConsumerEvent): void {
    const group = entry.group as ConsumerGroup;
    const { settings } = this.#options;
    const policy = settings['group.consumer.migration.policy'];
    if (mayDowngrade(group, { policy, maxSize: settings['group.max.size'] }))
      this.#downgrade(entry, group, event);
  }

  #downgrade(entry: Entry, group: ConsumerGroup, event: ConsumerEvent): void {
    const { classic, consumer, logger, nameOf, now } = this.#options;
    const settled = event.type === 'classic-join' && isSettled(group);
    const stored = toClassicGroup(group, { nameOf, now: now() });
    entry.group = restoreGroup(stored, now());
    consumer.save(entry, { kind: 'group', group: stored });
    logger.info({ group: group.groupId }, 'the group speaks the classic protocol again');
    if (!settled) classic.step(entry, { type: 'rebalance' });
    else classic.schedule(entry.group);
  }
}

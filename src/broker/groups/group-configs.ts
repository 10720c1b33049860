// Configs of single groups (KIP-848): names and meaning. They are kept and set with the configs of other resources;
// what a group doesn't set is the broker's setting.
import type { ConsumerGroupConfig } from './consumer/heartbeat.ts';
import type { GroupSettings } from './settings.ts';

/** What is set for a group, by name; undefined for nothing. */
export type GroupConfigSource = (groupId: string) => Readonly<Record<string, string>> | undefined;

export const SESSION_TIMEOUT = 'consumer.session.timeout.ms';
export const HEARTBEAT_INTERVAL = 'consumer.heartbeat.interval.ms';

/** What holds for the members of a group; values were checked when they were set. */
export function groupConfig(
  settings: GroupSettings,
  own: Readonly<Record<string, string>> | undefined,
): ConsumerGroupConfig {
  const number = (name: string, otherwise: number) => {
    const value = own?.[name];
    return value === undefined ? otherwise : Number(value);
  };
  return {
    sessionTimeoutMs: number(SESSION_TIMEOUT, settings['group.consumer.session.timeout.ms']),
    heartbeatIntervalMs: number(
      HEARTBEAT_INTERVAL,
      settings['group.consumer.heartbeat.interval.ms'],
    ),
    maxSize: settings['group.consumer.max.size'],
    defaultAssignor: settings['group.consumer.assignors'][0] ?? 'uniform',
  };
}

// Configs of which catalog holds the table.
import type { Settings } from '../../base/settings.ts';
import type { Refusals } from './theme.ts';

export const configs = {} as const satisfies Settings;

export const unserved: Refusals = {
  'table.topic.catalog.type': 'the embedded catalog is the only one served yet',
  'table.topic.catalog.uri': 'the embedded catalog is the only one served yet',
};

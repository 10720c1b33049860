// Configs of which catalog holds the table.
import type { Settings } from '../../base/settings.ts';
import type { Refusals } from './theme.ts';

export const configs = {} as const satisfies Settings;

export const unserved: Refusals = {
  'table.topic.catalog.type':
    'one catalog holds the tables of all topics of a node: set catalog.type there',
  'table.topic.catalog.uri':
    'one catalog holds the tables of all topics of a node: set catalog.uri there',
};

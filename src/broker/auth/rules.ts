// What each API asks before it acts, as Kafka has it: operation and type of resource. A test holds handlers to it: one
// without an entry fails, and so does one that asks something else. The page on security shows it.

import type { Operation, ResourceType } from './authorizer.ts';

export type Question = `${Operation} ${ResourceType}`;

export interface AccessRule {
  /** Everything that it may ask, depending on the request. */
  readonly asks: readonly Question[];
  /** Where `asks` alone doesn't say it. */
  readonly note?: string;
}

const nobody = (note: string): AccessRule => ({ asks: [], note });

/** By API key. */
export const ACCESS_RULES: Readonly<Record<number, AccessRule>> = {
  0: { asks: ['write topic', 'write transactionalId'], note: 'the second for transactions' },
  1: { asks: ['read topic'] },
  2: { asks: ['describe topic'] },
  3: {
    asks: ['describe topic', 'create cluster', 'create topic', 'describe cluster'],
    note: 'without names, topics that may not be described are left out; one of the two to create a topic',
  },
  8: { asks: ['read group', 'read topic'] },
  9: { asks: ['describe group', 'describe topic'], note: 'without names, as Metadata' },
  10: { asks: ['describe group', 'describe transactionalId'] },
  11: { asks: ['read group'] },
  12: { asks: ['read group'] },
  13: { asks: ['read group'] },
  14: { asks: ['read group'] },
  15: { asks: ['describe group'] },
  16: { asks: ['describe cluster', 'describe group'], note: 'other groups are left out' },
  17: nobody('it is how a client becomes somebody'),
  18: nobody('it comes before authentication'),
  19: {
    asks: ['create cluster', 'create topic', 'describeConfigs topic'],
    note: 'one of the two to create; the last for the configs in the answer',
  },
  20: { asks: ['delete topic', 'describe topic'], note: 'the second by id' },
  21: { asks: ['delete topic'] },
  22: {
    asks: ['write transactionalId', 'idempotentWrite cluster', 'write topic'],
    note: 'without transactions one of the last two, on any topic',
  },
  23: { asks: ['describe topic'] },
  24: { asks: ['write transactionalId', 'write topic', 'clusterAction cluster'] },
  25: { asks: ['write transactionalId', 'read group'] },
  26: { asks: ['write transactionalId'] },
  27: { asks: ['alter cluster', 'clusterAction cluster'], note: 'one of them' },
  28: { asks: ['write transactionalId', 'read group', 'read topic'] },
  29: { asks: ['describe cluster'] },
  30: { asks: ['alter cluster'] },
  31: { asks: ['alter cluster'] },
  32: { asks: ['describeConfigs topic', 'describeConfigs group', 'describeConfigs cluster'] },
  33: { asks: ['alterConfigs topic', 'alterConfigs group', 'alterConfigs cluster'] },
  34: { asks: ['alter cluster'] },
  35: { asks: ['describe cluster'] },
  36: nobody('it is how a client becomes somebody'),
  37: { asks: ['alter topic'] },
  42: { asks: ['delete group'] },
  43: { asks: ['alter cluster'] },
  44: { asks: ['alterConfigs topic', 'alterConfigs group', 'alterConfigs cluster'] },
  45: { asks: ['alter cluster'] },
  46: { asks: ['describe cluster'] },
  47: { asks: ['delete group', 'read topic'] },
  48: { asks: ['describeConfigs cluster'] },
  49: { asks: ['alterConfigs cluster'] },
  50: { asks: ['describe cluster'] },
  51: { asks: ['alter cluster'] },
  55: { asks: ['describe cluster'] },
  57: { asks: ['alter cluster'] },
  60: {
    asks: ['describe cluster'],
    note: 'for the operations only: where the brokers are is no secret',
  },
  61: { asks: ['read topic'] },
  65: { asks: ['describe transactionalId', 'describe topic'] },
  66: { asks: ['describe transactionalId'], note: 'others are left out' },
  68: { asks: ['read group', 'describe topic'] },
  69: { asks: ['describe group', 'describe topic'] },
  71: nobody('a client tells about itself'),
  72: nobody('a client tells about itself'),
  74: { asks: ['describeConfigs cluster'] },
  75: { asks: ['describe topic'] },
};

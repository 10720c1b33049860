// What may be limited for whom, and how AlterClientQuotas and DescribeClientQuotas name it: pure checks of requests,
// with the refusals that Kafka 4.3 gives. Not for: enforcement (client-quotas.ts, connection-limits.ts).
import { isIpAddress } from '../../base/ip-address.ts';
import type { ClientQuota, QuotaEntity, QuotaEntityType } from '../../metadata/quotas.ts';
import { ErrorCode } from '../../protocol/errors.ts';

/** Keys of users and client ids. */
export const CLIENT_QUOTA_KEYS = [
  'producer_byte_rate',
  'consumer_byte_rate',
  'request_percentage',
  'controller_mutation_rate',
] as const;

export type ClientQuotaKey = (typeof CLIENT_QUOTA_KEYS)[number];

/** The key of addresses. */
export const IP_QUOTA_KEY = 'connection_creation_rate';

/** Keys that take whole numbers only. */
const WHOLE: readonly string[] = ['producer_byte_rate', 'consumer_byte_rate', IP_QUOTA_KEY];

const TYPES: readonly string[] = ['user', 'client-id', 'ip'] satisfies QuotaEntityType[];

/** Longest name of an entity; Kafka's is bounded by its request only. */
const MAX_NAME = 1_024;

/** A client's mistake: a Kafka error code with a sentence. */
export interface QuotaFault {
  readonly errorCode: number;
  readonly errorMessage: string;
}

export interface EntityPart {
  readonly entityType: string;
  readonly entityName: string | null;
}

export interface QuotaOperation {
  readonly key: string;
  readonly value: number;
  readonly remove: boolean;
}

export const isQuotaFault = (value: object): value is QuotaFault => 'errorMessage' in value;

const invalid = (errorMessage: string): QuotaFault => ({
  errorCode: ErrorCode.INVALID_REQUEST,
  errorMessage,
});

/** The entity that a request names, or what is wrong with it. */
export function entityOf(parts: readonly EntityPart[]): QuotaEntity | QuotaFault {
  if (parts.length === 0) return invalid('an empty quota entity: name a user, client-id or ip');
  const entity: Partial<Record<QuotaEntityType, string | null>> = {};
  for (const { entityType, entityName } of parts) {
    if (!TYPES.includes(entityType)) return invalid(`unknown quota entity type "${entityType}"`);
    if (entityType in entity) return invalid(`quota entity type ${entityType} is given twice`);
    if (entityName === '') return invalid(`an empty ${entityType} is no quota entity`);
    if (entityName !== null && entityName.length > MAX_NAME) {
      return invalid(`a ${entityType} of ${entityName.length} characters: ${MAX_NAME} at most`);
    }
    entity[entityType as QuotaEntityType] = entityName;
  }
  if (!('ip' in entity)) return entity;
  if (parts.length > 1) return invalid('an ip is not combined with user or client-id');
  const { ip } = entity;
  if (ip != null && !isIpAddress(ip)) {
    return invalid(`"${ip}" is not an IP address (names are not resolved)`);
  }
  return entity;
}

/** The values that a request sets or removes, or what is wrong with them. */
export function valuesOf(
  entity: QuotaEntity,
  operations: readonly QuotaOperation[],
): Record<string, number | null> | QuotaFault {
  const keys: readonly string[] = 'ip' in entity ? [IP_QUOTA_KEY] : CLIENT_QUOTA_KEYS;
  const values: Record<string, number | null> = {};
  for (const { key, value, remove } of operations) {
    if (Object.hasOwn(values, key)) return invalid(`quota ${key} is given twice`);
    if (!keys.includes(key)) {
      return invalid(`${key} is no quota of this entity: ${keys.join(', ')} are`);
    }
    if (remove) {
      values[key] = null;
      continue;
    }
    // A limit of zero would stop a client for ever: whoever wants that denies it by ACL.
    if (!(value > 0) || value === Infinity) {
      return invalid(`quota ${key} must be greater than 0, not ${value}`);
    }
    if (WHOLE.includes(key) && !Number.isInteger(value)) {
      return invalid(`quota ${key} must be a whole number, not ${value}`);
    }
    values[key] = value;
  }
  return values;
}

/** How a filter names an entity: by its exact name, the default one, or any. */
const MATCH = { exact: 0, default: 1, any: 2 } as const;

export interface FilterComponent {
  readonly entityType: string;
  readonly matchType: number;
  readonly match: string | null;
}

/** What is wrong with a filter, if anything. */
export function filterFault(components: readonly FilterComponent[]): QuotaFault | undefined {
  const seen = new Set<string>();
  for (const { entityType, matchType, match } of components) {
    if (entityType === '') return invalid('an empty quota entity type');
    if (seen.has(entityType)) return invalid(`entity type ${entityType} is filtered for twice`);
    seen.add(entityType);
    if (!TYPES.includes(entityType)) {
      const errorMessage = `unknown quota entity type "${entityType}"`;
      return { errorCode: ErrorCode.UNSUPPORTED_VERSION, errorMessage };
    }
    if (matchType === MATCH.exact && match === null) {
      return invalid(`an exact match of ${entityType} needs a name`);
    }
    if (matchType !== MATCH.exact && match !== null) {
      return invalid(`a match of type ${matchType} takes no name`);
    }
    if (matchType < MATCH.exact || matchType > MATCH.any) {
      return invalid(`unknown match type ${matchType}`);
    }
  }
  if (seen.has('ip') && seen.size > 1) return invalid('ip is not combined with user or client-id');
  return undefined;
}

/** Whether every component matches; with `strict`, the entity has no other parts. */
export function matches(
  { entity }: ClientQuota,
  components: readonly FilterComponent[],
  strict: boolean,
): boolean {
  if (strict && Object.keys(entity).length !== components.length) return false;
  return components.every(({ entityType, matchType, match }) => {
    const name = entity[entityType as QuotaEntityType];
    if (name === undefined) return false;
    if (matchType === MATCH.any) return true;
    return matchType === MATCH.default ? name === null : name === match;
  });
}

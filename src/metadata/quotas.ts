// Client quotas (KIP-546): limits by user, client id, both, or address. An entity is a few named parts; null names the
// default of its kind. Not for: which limit holds for whom (broker/quotas/).

export type QuotaEntityType = 'user' | 'client-id' | 'ip';

/** Parts of an entity by type; null stands for "everybody without an own one". */
export type QuotaEntity = Readonly<Partial<Record<QuotaEntityType, string | null>>>;

export interface ClientQuota {
  readonly entity: QuotaEntity;
  /** Limits by key (`producer_byte_rate`, …), at least one. */
  readonly values: Readonly<Record<string, number>>;
}

export interface ClientQuotaChange {
  readonly entity: QuotaEntity;
  /** A number sets, null removes. */
  readonly values: Readonly<Record<string, number | null>>;
}

export interface QuotasMetadata {
  list(): Promise<readonly ClientQuota[]>;
  /** Makes all changes at once and tells all quotas there are then. */
  alter(changes: readonly ClientQuotaChange[]): Promise<readonly ClientQuota[]>;
}

/** One text per entity, whatever the order of its parts. */
export function quotaEntityKey(entity: QuotaEntity): string {
  return JSON.stringify(Object.entries(entity).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The inverse of {@link quotaEntityKey}. */
export function quotaEntityOf(key: string): QuotaEntity {
  return Object.fromEntries(JSON.parse(key) as [QuotaEntityType, string | null][]);
}

// Which quota holds for a client: Kafka's order of precedence, most specific first. A pure look-up; each key is looked
// up on its own, so that a quota which limits fetching doesn't hide a wider one that limits producing.
import { type ClientQuota, type QuotaEntity, quotaEntityKey } from '../../metadata/quotas.ts';

/** A limit, and who shares it: everybody with the same user, the same client id, or both. */
export interface AppliedQuota {
  readonly limit: number;
  readonly user: string | null;
  readonly clientId: string | null;
}

export class QuotaRules {
  readonly #byEntity = new Map<string, Readonly<Record<string, number>>>();
  /** True when any user or client id is limited. */
  readonly limitsClients: boolean;
  /** True when any address is limited. */
  readonly limitsAddresses: boolean;

  constructor(quotas: readonly ClientQuota[]) {
    for (const { entity, values } of quotas) this.#byEntity.set(quotaEntityKey(entity), values);
    this.limitsClients = quotas.some(({ entity }) => !('ip' in entity));
    this.limitsAddresses = quotas.some(({ entity }) => 'ip' in entity);
  }

  /** The quota of a client, or undefined where it has none. */
  ofClient(user: string, clientId: string, key: string): AppliedQuota | undefined {
    const both = { user, clientId };
    const candidates: readonly (readonly [QuotaEntity, Omit<AppliedQuota, 'limit'>])[] = [
      [{ user, 'client-id': clientId }, both],
      [{ user, 'client-id': null }, both],
      [{ user }, { user, clientId: null }],
      [{ user: null, 'client-id': clientId }, both],
      [{ user: null, 'client-id': null }, both],
      [{ user: null }, { user, clientId: null }],
      [{ 'client-id': clientId }, { user: null, clientId }],
      [{ 'client-id': null }, { user: null, clientId }],
    ];
    for (const [entity, sharers] of candidates) {
      const limit = this.#limit(entity, key);
      if (limit !== undefined) return { limit, ...sharers };
    }
    return undefined;
  }

  /** The limit of an address: its own, or that of all without an own one. */
  ofAddress(ip: string, key: string): number | undefined {
    return this.#limit({ ip }, key) ?? this.#limit({ ip: null }, key);
  }

  #limit(entity: QuotaEntity, key: string): number | undefined {
    return this.#byEntity.get(quotaEntityKey(entity))?.[key];
  }
}

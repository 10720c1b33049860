// AlterClientQuotas (49), versions 0–1 (KIP-546): sets and removes limits of users, client ids, both, or addresses.
// Good entries are stored together and hold at once; an entity named twice is refused both times. v1 flexible.
// Differs from Kafka: addresses are not resolved from host names, and values must be finite.
import { FloeError } from '../../base/error.ts';
import { type ClientQuotaChange, quotaEntityKey } from '../../metadata/quotas.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type AlterClientQuotasReply,
  type AlterClientQuotasRequest,
  alterClientQuotasApi,
} from '../../protocol/messages/49-alter-client-quotas.ts';
import { kafkaCodeOf } from '../failures.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { entityOf, isQuotaFault, type QuotaFault, valuesOf } from '../quotas/entities.ts';
import { repeated } from './repeated.ts';

type EntryRequest = AlterClientQuotasRequest['entries'][number];
type EntryReply = AlterClientQuotasReply['entries'][number];

/** Most entities with quotas: they are held in memory and looked through by each description. */
const MAX_ENTITIES = 10_000;

export const alterClientQuotasHandler: Handler<typeof alterClientQuotasApi> = {
  api: alterClientQuotasApi,
  versions: { min: 0, max: 1 },
  async handle({ entries, validateOnly }, context) {
    const checked = checkAll(entries, context);
    const changes = checked.filter((entry) => !isQuotaFault(entry)) as ClientQuotaChange[];
    const failure = validateOnly ? undefined : await store(changes, context);
    const replies = entries.map(({ entity }, at): EntryReply => {
      const fault = isQuotaFault(checked[at]!) ? checked[at] : failure;
      if (fault !== undefined) context.countError(fault.errorCode);
      return { ...(fault ?? { errorCode: 0, errorMessage: null }), entity };
    });
    return { entries: replies };
  },
};

function checkAll(
  entries: readonly EntryRequest[],
  { access, services }: RequestContext,
): (ClientQuotaChange | QuotaFault)[] {
  if (!access.allows('alterConfigs', 'cluster')) {
    const errorMessage = 'AlterConfigs on the cluster is not allowed';
    return entries.map(() => ({
      errorCode: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
      errorMessage,
    }));
  }
  const checked = entries.map(check);
  const keys = checked.map((entry) => (isQuotaFault(entry) ? '' : quotaEntityKey(entry.entity)));
  const twice = repeated(keys.filter((key) => key !== ''));
  const known = new Set(services.quotas.list().map(({ entity }) => quotaEntityKey(entity)));
  let room = MAX_ENTITIES - known.size;
  return checked.map((entry, at) => {
    const key = keys[at]!;
    if (isQuotaFault(entry)) return entry;
    if (twice.has(key)) return invalid('the entity is named twice in the request');
    if (known.has(key)) return entry;
    room -= 1;
    return room >= 0 ? entry : invalid(`${MAX_ENTITIES} entities have quotas: remove some first`);
  });
}

function check({ entity: parts, ops }: EntryRequest): ClientQuotaChange | QuotaFault {
  const entity = entityOf(parts);
  if (isQuotaFault(entity)) return entity;
  const values = valuesOf(entity, ops);
  return isQuotaFault(values) ? values : { entity, values };
}

/** Undefined when all is stored. */
async function store(
  changes: readonly ClientQuotaChange[],
  { services }: RequestContext,
): Promise<QuotaFault | undefined> {
  if (changes.length === 0) return undefined;
  try {
    await services.quotas.alter(changes);
    return undefined;
  } catch (caught) {
    const error = FloeError.from(caught);
    return { errorCode: kafkaCodeOf(error), errorMessage: error.message };
  }
}

function invalid(errorMessage: string): QuotaFault {
  return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage };
}

// ListTransactions (66), versions 0–2: transactional ids that this node coordinates (clients ask all) by state, producer id, v1 how long their transaction has been
// open, v2 a pattern that the whole id must match (RE2, KIP-1152). Without a transaction yet, an id counts as open
// since the beginning of time, as in Kafka. States that Kafka passes through and Floe doesn't have match nothing.
import { RE2JS } from 're2js';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type ListTransactionsRequest,
  listTransactionsApi,
} from '../../protocol/messages/66-list-transactions.ts';
import type { Handler } from '../handler.ts';
import type { TransactionCoordinator } from '../transactions/coordinator.ts';

const STATES: ReadonlySet<string> = new Set([
  'Empty',
  'Ongoing',
  'PrepareCommit',
  'PrepareAbort',
  'CompleteCommit',
  'CompleteAbort',
  'Dead',
  'PrepareEpochFence',
]);

export function listTransactionsHandler(
  transactions: TransactionCoordinator,
): Handler<typeof listTransactionsApi> {
  return {
    api: listTransactionsApi,
    versions: { min: 0, max: 2 },
    async handle(request, context) {
      const matches = matcherOf(request.transactionalIdPattern);
      if (matches === undefined) {
        context.countError(ErrorCode.INVALID_REGULAR_EXPRESSION);
        return refusal(ErrorCode.INVALID_REGULAR_EXPRESSION);
      }
      if (transactions.listFault !== 0) return refusal(transactions.listFault);
      const isWanted = filterOf(request, context.services.clock.now());
      const transactionStates = (await transactions.list())
        .filter(isWanted)
        .filter(({ transactionalId }) => matches(transactionalId))
        .filter(({ transactionalId: id }) =>
          context.access.allows('describe', 'transactionalId', id),
        )
        .map(({ transactionalId, producerId, status: transactionState }) => ({
          transactionalId,
          producerId,
          transactionState,
        }));
      const unknownStateFilters = request.stateFilters.filter((name) => !STATES.has(name));
      return { errorCode: 0, unknownStateFilters, transactionStates };
    },
    failed: () => refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE),
  };
}

function refusal(errorCode: number) {
  return { errorCode, unknownStateFilters: [], transactionStates: [] };
}

function filterOf(
  { stateFilters, producerIdFilters, durationFilter }: ListTransactionsRequest,
  nowMs: number,
) {
  const states = new Set(stateFilters);
  const producerIds = new Set(producerIdFilters);
  return (state: { status: string; producerId: number; startMs: number }): boolean =>
    (states.size === 0 || states.has(state.status)) &&
    (producerIds.size === 0 || producerIds.has(state.producerId)) &&
    (durationFilter < 0 || nowMs - state.startMs > durationFilter);
}

/** Undefined for a pattern that is none; no pattern, or an empty one, matches everything. */
function matcherOf(pattern: string | null): ((id: string) => boolean) | undefined {
  if (pattern === null || pattern === '') return () => true;
  try {
    const compiled = RE2JS.compile(pattern);
    return (id) => compiled.matches(id);
  } catch {
    return undefined;
  }
}

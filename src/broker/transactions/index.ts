// Transactions as the broker's composition root sees them: a coordinator, and the handlers that use it.
// Produce, InitProducerId and OffsetFetch reach it through the broker's services.
import { afterLoad } from '../after-load.ts';
import type { AnyHandler } from '../handler.ts';
import { addPartitionsToTxnHandler } from '../handlers/24-add-partitions-to-txn.ts';
import { addOffsetsToTxnHandler } from '../handlers/25-add-offsets-to-txn.ts';
import { endTxnHandler } from '../handlers/26-end-txn.ts';
import { writeTxnMarkersHandler } from '../handlers/27-write-txn-markers.ts';
import { txnOffsetCommitHandler } from '../handlers/28-txn-offset-commit.ts';
import { describeProducersHandler } from '../handlers/61-describe-producers.ts';
import { describeTransactionsHandler } from '../handlers/65-describe-transactions.ts';
import { listTransactionsHandler } from '../handlers/66-list-transactions.ts';
import type { TransactionCoordinator } from './coordinator.ts';

export { TransactionCoordinator } from './coordinator.ts';
export { transactionSettings } from './settings.ts';

/** All APIs that need the transaction coordinator and nothing else. */
export function transactionHandlers(transactions: TransactionCoordinator): readonly AnyHandler[] {
  return [
    afterLoad(
      addPartitionsToTxnHandler(transactions),
      transactions,
      ({ v3AndBelowTransactionalId: id }) => (id === '' ? [] : [id]),
    ),
    afterLoad(addOffsetsToTxnHandler(transactions), transactions, idOf),
    afterLoad(endTxnHandler(transactions), transactions, idOf),
    writeTxnMarkersHandler(transactions),
    // It goes to the group's coordinator.
    afterLoad(txnOffsetCommitHandler(transactions), transactions.groups, ({ groupId }) => [
      groupId,
    ]),
    describeProducersHandler(transactions),
    afterLoad(
      describeTransactionsHandler(transactions),
      transactions,
      ({ transactionalIds }) => transactionalIds,
    ),
    listTransactionsHandler(transactions),
  ];
}

const idOf = ({ transactionalId }: { readonly transactionalId: string }) => [transactionalId];

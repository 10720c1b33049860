import { transactionsContract } from '../contract/transactions.ts';
import { openStore } from './contract-store.ts';

transactionsContract('SQLite', openStore, 150);

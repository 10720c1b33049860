import { afterAll, beforeAll } from 'vitest';
import { transactionsContract } from '../contract/transactions.ts';
import { openStore } from './contract-store.ts';
import { startPostgres, type TestServer } from './testing.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

// Fewer runs than in memory: each has a database of its own.
transactionsContract('PostgreSQL', () => openStore(server), 5);

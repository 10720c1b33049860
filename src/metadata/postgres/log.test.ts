import { afterAll, beforeAll } from 'vitest';
import { logContract } from '../contract/log.ts';
import { openStore } from './contract-store.ts';
import { startPostgres, type TestServer } from './testing.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

logContract('PostgreSQL', () => openStore(server));

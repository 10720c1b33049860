import { afterAll, beforeAll } from 'vitest';
import { domainContracts } from '../contract/all.ts';
import { namesContract } from '../contract/names.ts';
import { SharedStore } from './contract-shared.ts';
import { startPostgres, type TestServer } from './testing.ts';

let server: TestServer;
let store: SharedStore;
beforeAll(async () => {
  server = await startPostgres();
  store = await SharedStore.on(server);
});
afterAll(async () => {
  await store.close();
  await server.stop();
});

domainContracts('PostgreSQL', () => store.open());
namesContract('PostgreSQL', () => store.open());

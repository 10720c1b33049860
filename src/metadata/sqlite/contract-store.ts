// SQLite under the contract suites. It has no clock of its own and goes by the times it is told. Not for production code.
import type { StoreUnderTest } from '../contract/store.ts';
import { RESTORED } from '../transfer/index.ts';
import { metadataOn, openDatabase } from './index.ts';

export async function openStore(): Promise<StoreUnderTest> {
  const database = openDatabase(':memory:');
  const open = () => metadataOn(database, { followedCommits: 100 });
  let metadata = open();
  return {
    get metadata() {
      return metadata;
    },
    async at() {},
    async reopen() {
      metadata = open();
    },
    async restored() {
      for (const sql of RESTORED) database.prepare(sql).run();
    },
    failMarkers(text) {
      const { log } = metadata;
      const host = log.markerHost;
      log.markerHost = {
        place: () => {
          throw new Error(text);
        },
        committed: () => {},
        failed: () => {},
      };
      return () => {
        log.markerHost = host;
      };
    },
    async close() {
      database.close();
    },
  };
}

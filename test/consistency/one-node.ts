// One node, on a local folder or on an object store behind a relay: killed, paused, its store slowed down or cut off.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ChildNode, startChild } from '../../src/cli/child.ts';
import { freePort } from '../../src/metadata/testing/free-port.ts';
import { type Relay, startRelay } from '../cluster/relay.ts';
import { startS3, TEST_ACCESS_KEY, TEST_SECRET_KEY, type TestS3 } from '../s3/server.ts';
import { QUICK_UPKEEP, type Target } from './target.ts';

export async function localNode(folder: string): Promise<Target> {
  return oneNode(folder, []);
}

/** Undefined when there is no object store. */
export async function s3Node(folder: string): Promise<Target | undefined> {
  const s3 = await startS3();
  if (s3 === undefined) return undefined;
  const { hostname, port } = new URL(s3.endpoint);
  const relay = await startRelay({ host: hostname, port: Number(port) });
  const node = await oneNode(folder, await storeArguments(s3, relay));
  const slowed = (toServerMs: (int: (limit: number) => number) => number) => {
    return async (prng: { int(limit: number): number }) => {
      relay.trouble = { toServerMs: toServerMs((limit) => prng.int(limit)) };
      await sleep(1_000 + prng.int(6_000));
      relay.trouble = {};
    };
  };
  return {
    brokers: node.brokers,
    get http() {
      return node.http;
    },
    stores: node.stores,
    harms: {
      ...node.harms,
      slow: slowed((int) => 100 + int(1_500)),
      cut: slowed(() => Infinity),
    },
    async stop() {
      await node.stop();
      relay.stop();
      await s3.stop();
    },
  };
}

async function storeArguments(s3: TestS3, relay: Relay): Promise<string[]> {
  const settings = {
    's3.endpoint': `http://${relay.host}:${relay.port}`,
    's3.path.style': 'true',
    's3.region': 'us-east-1',
    's3.access.key.id': TEST_ACCESS_KEY,
    's3.secret.access.key': TEST_SECRET_KEY,
  };
  const set = Object.entries(settings).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
  return ['--storage', `s3://${await s3.bucket()}/consistency`, ...set];
}

async function oneNode(folder: string, storage: readonly string[]): Promise<Target> {
  const brokers = `127.0.0.1:${await freePort()}`;
  const dataDir = join(folder, 'data');
  const start = () => startChild(dataDir, ['--kafka', brokers, ...QUICK_UPKEEP, ...storage]);
  let node: ChildNode = await start();
  return {
    brokers,
    get http() {
      return node.addresses.http;
    },
    stores: ['--data-dir', dataDir, ...storage],
    harms: {
      async kill(prng) {
        await node.kill();
        await sleep(prng.int(1_000));
        node = await start();
      },
      async pause(prng) {
        node.signal('SIGSTOP');
        await sleep(500 + prng.int(7_000));
        node.signal('SIGCONT');
      },
    },
    async stop() {
      await node.stop();
    },
  };
}

// A node runs only what its roles say: what isn't there isn't listened for, and says so.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { ClusterStatus } from '../../src/cli/cluster-status.ts';
import { serveOptions } from '../../src/cli/options.ts';
import { type Floe, serve } from '../../src/cli/serve.ts';

const folder = mkdtempSync(join(tmpdir(), 'floe-roles-'));
let floe: Floe | undefined;
afterEach(async () => {
  await floe?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function start(roles: string | undefined): Promise<Floe> {
  const any = '127.0.0.1:0';
  floe = await serve(
    serveOptions({
      dataDir: folder,
      ...{ kafka: any, registry: any, catalog: any, http: any },
      ...(roles === undefined ? {} : { roles }),
      nodeId: '4',
      rack: 'a',
      set: ['log.level=silent'],
    }),
  );
  return floe;
}

const get = async (path: string) => {
  const response = await fetch(`http://${floe!.addresses.http}${path}`);
  return { status: response.status, body: await response.json() };
};

test('a node alone tells of a cluster of one', async () => {
  const { addresses, drainMs } = await start(undefined);
  expect(drainMs).toBe(0);
  const { body } = await get('/v1/cluster');
  const status = body as ClusterStatus;
  expect(status).toMatchObject({ nodeId: 4, level: 1, leases: [] });
  const [host, port] = addresses.kafka.split(':');
  expect(status.nodes).toMatchObject([
    {
      nodeId: 4,
      state: 'alive',
      rack: 'a',
      listeners: { PLAINTEXT: { host, port: Number(port) } },
      http: `http://${addresses.http}`,
      lag: 0,
    },
  ]);
});

test('without front and coordinator there is no Kafka, without http no registry, without query no SQL', async () => {
  const { addresses } = await start('tables,maintenance');
  expect(addresses).toMatchObject({ kafka: 'none', registry: 'none', catalog: 'none' });
  expect((await get('/healthz')).status).toBe(200);
  const sql = await fetch(`http://${addresses.http}/v1/sql`, { method: 'POST', body: 'SELECT 1' });
  expect(sql.status).toBe(404);
});

test('an unknown role is refused with those that there are', async () => {
  await expect(start('frontend')).rejects.toThrow(
    'node.roles: "frontend" is not one of front, coordinator, tables, maintenance, query, http',
  );
});

// A table fed by schemas of a registry elsewhere: while it is down or talks nonsense the table waits and says so.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import avsc from 'avsc';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { externalRegistrySettings, openSchemas } from '../../schema-registry/external/index.ts';
import { Bench, framed } from '../testing/bench.ts';
import { readRows } from '../testing/parquet-rows.ts';

let bench: Bench | undefined;

afterEach(() => bench?.stop());

test('rows wait for the registry, none is lost, the table goes on by itself', async () => {
  const schema = { type: 'record', name: 'R', fields: [{ name: 'a', type: 'int' }] } as const;
  let mode: 'down' | 'nonsense' | 'well' = 'down';
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    if (mode === 'down') response.writeHead(503).end();
    else if (mode === 'nonsense') response.end('<html>');
    else if (request.url === '/schemas/ids/7') {
      response.end(JSON.stringify({ schema: JSON.stringify(schema) }));
    } else response.writeHead(404).end('{"error_code":40401,"message":"Subject not found."}');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  try {
    bench = await Bench.open();
    const schemas = openSchemas({
      settings: resolveSettings(externalRegistrySettings, {
        'schema.registry.url': `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        'schema.registry.request.attempts': '1',
      }),
      clock: systemClock,
      prng: seededPrng(1),
      embedded: bench.schemas,
    });
    bench.start({ schemas });
    const topic = await bench.topic('t');
    const value = framed(7, avsc.Type.forSchema(schema as never).toBuffer({ a: 5 }));
    bench.produce(topic, [{ value }]);
    await expect.poll(() => asked, { timeout: 10_000 }).toBeGreaterThan(0);
    mode = 'nonsense';
    const before = asked;
    await expect.poll(() => asked, { timeout: 10_000 }).toBeGreaterThan(before);
    mode = 'well';
    const rows = async () => {
      try {
        return (await readRows(bench!.warehouse, await bench!.load('t'))).map((row) => row['a']);
      } catch {
        return [];
      }
    };
    await expect.poll(rows, { timeout: 15_000 }).toEqual([5]);
    await expect(bench.load('t_dlq')).rejects.toThrow();
  } finally {
    server.closeAllConnections();
    server.close();
  }
}, 40_000);

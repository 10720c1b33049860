import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { serveOptions } from './options.ts';

const folder = mkdtempSync(join(tmpdir(), 'floe-options-'));
afterAll(() => rmSync(folder, { recursive: true }));

function config(text: string): string {
  const path = join(folder, 'floe.yaml');
  writeFileSync(path, text);
  return path;
}

test('defaults are loopback and a folder', () => {
  const options = serveOptions({ set: [] });
  expect(options.kafka).toEqual({ host: '127.0.0.1', port: 9092 });
  expect(options.storage).toBeUndefined();
  expect(options.dataDir).toMatch(/\/floe-data$/);
});

test('flag before --set before file', () => {
  const path = config(
    'kafka: 127.0.0.1:1\nhttp: 127.0.0.1:2\nnum:\n  partitions: 3\nlog.retention.hours: 5\nstorage: s3://b/p/\n',
  );
  const options = serveOptions({
    config: path,
    kafka: '127.0.0.1:9',
    set: ['num.partitions=4', 'a=b=c'],
  });
  expect(options.kafka.port).toBe(9);
  expect(options.http.port).toBe(2);
  expect(options.storage).toBe('s3://b/p');
  expect(options.settings).toEqual({ 'num.partitions': '4', 'log.retention.hours': '5', a: 'b=c' });
});

test('one broker of several needs storage that all of them see', () => {
  const metadata = 'postgres://floe@db/floe';
  const bucket = { metadata, storage: 's3://bucket', set: [] };
  expect(serveOptions(bucket).metadata).toBe(metadata);
  expect(serveOptions({ metadata, storage: 'file:///shared', set: [] }).metadata).toBe(metadata);
  expect(() => serveOptions({ metadata, set: [] })).toThrow('say --storage s3://bucket/prefix');
  expect(() => serveOptions({ ...bucket, metadata: 'mysql://u:secret@h/d' })).toThrow(
    '--metadata: "mysql://u:…@h/d" is not postgres://',
  );
});

test.each([
  [{ set: ['novalue'] }, '--set: "novalue" is not key=value'],
  [
    { set: [], storage: 'ftp://x' },
    '--storage: "ftp://x" is not file:///folder or s3://bucket/prefix',
  ],
  [{ set: [], kafka: 'x' }, '--kafka: "x" is not HOST:PORT'],
  [{ set: [], config: '/nowhere.yaml' }, '--config /nowhere.yaml: ENOENT'],
])('%o is refused by name', (flags, message) => {
  expect(() => serveOptions(flags)).toThrow(message);
});

test('a file that is no map is refused', () => {
  expect(() => serveOptions({ config: config('- a\n- b\n'), set: [] })).toThrow('must be a map');
  expect(() => serveOptions({ config: config('a: [\n'), set: [] })).toThrow('--config');
});

test('flags of a node in a cluster are settings under shorter names', () => {
  const options = serveOptions({
    nodeId: '7',
    rack: 'a',
    roles: 'front,http',
    s3Endpoint: 'http://store:9000',
    advertise: 'floe.example:9094',
    set: ['broker.rack=b'],
  });
  expect(options.nodeId).toBe(7);
  expect(options.settings).toEqual({
    'node.id': '7',
    'broker.rack': 'a',
    'node.roles': 'front,http',
    's3.endpoint': 'http://store:9000',
    'advertised.listeners': 'PLAINTEXT://floe.example:9094',
  });
  const file = serveOptions({ config: config('rack: a\nbroker.id: 3\n'), set: [] });
  expect(file.settings).toEqual({ 'broker.rack': 'a', 'broker.id': '3' });
  expect(file.nodeId).toBe(3);
  expect(serveOptions({ set: [] }).nodeId).toBeUndefined();
});

test('the advertised address is that of the first listener, said once', () => {
  const set = ['listeners=CLIENTS://0.0.0.0:9092,INTERNAL://0.0.0.0:9093'];
  expect(serveOptions({ advertise: 'a:1', set }).settings['advertised.listeners']).toBe(
    'CLIENTS://a:1',
  );
  expect(() =>
    serveOptions({ advertise: 'a:1', set: ['advertised.listeners=PLAINTEXT://b:1'] }),
  ).toThrow('--advertise: "a:1": advertised.listeners says it already');
  expect(() => serveOptions({ advertise: 'nowhere', set: [] })).toThrow('is not HOST:PORT');
});

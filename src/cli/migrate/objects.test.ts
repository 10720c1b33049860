// Objects on their way: what is there is kept, what is damaged there is written again, what is damaged here is told.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TEST_CLUSTER, TestLog } from '../../storage/log/test-log.ts';
import { MemoryObjectStore } from '../../storage/objects/index.ts';
import { assertTiled, copyObjects, type LogObjectRow, sealedObjects } from './objects.ts';

let log: TestLog;
let to: MemoryObjectStore;
let objects: readonly LogObjectRow[];
beforeEach(async () => {
  log = await TestLog.open();
  to = new MemoryObjectStore(log.clock, 'target');
  const [partitionId] = await log.createTopic(1);
  for (let file = 0; file < 3; file += 1) {
    await log.append([{ partitionId: partitionId!, records: [{ value: `v${file}` }] }]);
    await log.seal();
  }
  while (log.metadata.log.checkpoint(100));
  objects = sealedObjects(log.metadata.database);
});
afterEach(() => log.stop());

const copy = () =>
  copyObjects(objects, { clusterId: TEST_CLUSTER, from: log.store, to, checkOneOf: 1 });

test('a run goes on where another broke off, and writes anew what is damaged there', async () => {
  expect(assertTiled(log.metadata.database)).toBe(1);
  await to.put(objects[0]!.key, new Uint8Array(objects[0]!.bytes));
  expect(await copy()).toMatchObject({ objects: 3, kept: 0, checked: 3 });
  expect(await copy()).toMatchObject({ objects: 3, kept: 3, checked: 3 });
  const [{ key, bytes }] = objects as [LogObjectRow];
  expect(Buffer.compare(await to.get(key), await log.store.get(key, { length: bytes }))).toBe(0);
});

test('a damaged batch, a short object and a hole are told by name', async () => {
  const { key, bytes } = objects[1]!;
  const body = Uint8Array.from(await log.store.get(key, { length: bytes }));
  const value = Buffer.from(body).indexOf('v1');
  expect(value).toBeGreaterThan(0);
  body[value]! ^= 1;
  await log.store.put(key, body);
  await expect(copy()).rejects.toMatchObject({ code: 'corrupt' });
  await log.store.put(key, body.subarray(0, 100));
  await expect(copy()).rejects.toThrow(`${key} has 100 bytes`);
  log.metadata.database
    .prepare('DELETE FROM object_entries WHERE object_id = ?')
    .run(objects[1]!.objectId);
  expect(() => assertTiled(log.metadata.database)).toThrow(
    /L4: partition \d+ has nothing from offset 1/,
  );
});

import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Compression } from '../../protocol/codecs.ts';
import { batchEnd } from '../../protocol/record-batch.ts';
import { type Disk, type DiskFile, nodeDisk } from './disk.ts';
import { loadRecent } from './open-log.ts';
import { ReaderWorker, startReaderThread, threadSource } from './reader-thread.ts';
import { batchesOf, TEST_CLUSTER, TestLog } from './test-log.ts';

let log: TestLog;
let partitions: readonly number[];
const open = async (options: Parameters<typeof TestLog.open>[0] = {}, count = 2) => {
  log = await TestLog.open(options);
  partitions = await log.createTopic(count);
};
beforeEach(() => open());
afterEach(() => log.stop());

const records = (count: number, value = 'v', timestamp = 1_000) =>
  Array.from({ length: count }, (_, n) => ({ key: `${n}`, value, timestamp: timestamp + n }));
const offsetsOf = (batches: readonly { baseOffset: number }[]) =>
  batches.map(({ baseOffset }) => baseOffset);

test('reads what was written, from the open file, a sealed one, and both', async () => {
  const [a, b] = [partitions[0]!, partitions[1]!];
  for (let n = 0; n < 6; n += 1) {
    await log.append([
      { partitionId: a, records: records(3, `a${n}`) },
      { partitionId: b, records: records(1, `b${n}`) },
      { partitionId: a, records: records(2, `A${n}`) },
    ]);
    if (n === 2) await log.seal();
  }
  const found = await log.readAll(a);
  expect(offsetsOf(found)).toEqual([0, 3, 5, 8, 10, 13, 15, 18, 20, 23, 25, 28]);
  expect(found.every(({ bytes }) => batchEnd(bytes, 0) === bytes.length)).toBe(true);
  expect(found.map(({ bytes }) => /[aA]\d/.exec(bytes.toString('latin1'))![0])).toEqual(
    [0, 1, 2, 3, 4, 5].flatMap((n) => [`a${n}`, `A${n}`]),
  );
  expect(offsetsOf(await log.readAll(b))).toEqual([0, 1, 2, 3, 4, 5]);
  // After a restart nothing is in memory but what loadRecent brings.
  const later = log.openReader();
  await loadRecent(later, log.metadata);
  expect(await log.readAll(a, { reader: later })).toEqual(found);
  await log.seal();
  expect(await log.readAll(a, { reader: log.openReader() })).toEqual(found);
});

test('an offset inside a batch gives the whole batch', async () => {
  const [a] = partitions as [number];
  await log.append([
    { partitionId: a, records: records(10) },
    { partitionId: a, records: records(10) },
  ]);
  for (const [offset, bases] of [
    [0, [0, 10]],
    [9, [0, 10]],
    [10, [10]],
    [19, [10]],
  ] as const) {
    const { runs, release } = await log.read(a, offset);
    expect(runs[0]!.baseOffset).toBe(bases[0]);
    expect(runs.every((run) => !run.patched)).toBe(true);
    release();
    expect(offsetsOf(await log.readAll(a, { offset }))).toEqual(bases);
  }
});

test('the budget holds but for the first batch; the end is kept', async () => {
  const [a] = partitions as [number];
  const flush = Array.from({ length: 8 }, () => ({
    partitionId: a,
    records: records(2, 'x'.repeat(500)),
  }));
  await log.append(flush);
  const size = (await log.readAll(a))[0]!.bytes.length;
  const bytesAt = async (maxBytes: number, endOffset = 16) => {
    const found = await log.read(a, 0, { maxBytes, endOffset });
    found.release();
    return found.bytes / size;
  };
  expect(await bytesAt(1)).toBe(1);
  expect(await bytesAt(size * 2)).toBe(2);
  expect(await bytesAt(size * 3 - 1)).toBe(2);
  expect(await bytesAt(1e6)).toBe(8);
  expect(await bytesAt(1e6, 10)).toBe(5);
  expect(offsetsOf(await log.readAll(a, { maxBytes: size + 1 }))).toEqual([
    0, 2, 4, 6, 8, 10, 12, 14,
  ]);
});

test('a sequential reader costs one read call for many reads, and another reader none', async () => {
  const [a] = partitions as [number];
  for (let n = 0; n < 10; n += 1)
    await log.append([{ partitionId: a, records: records(1, 'x'.repeat(20_000)) }]);
  await log.seal();
  log.gets.length = 0;
  expect(await log.readAll(a, { maxBytes: 30_000 })).toHaveLength(10);
  const dataReads = log.gets.filter(({ bytes }) => bytes > 10_000);
  expect(dataReads).toHaveLength(1);
  log.gets.length = 0;
  await log.readAll(a, { maxBytes: 50_000 });
  expect(log.gets).toHaveLength(0);
});

test('reads no more than the entries asked for when they lie scattered', async () => {
  await log.stop();
  await open({ settings: { 'log.read.gap.bytes': '0', 'log.read.ahead.bytes': '0' } }, 20);
  for (let n = 0; n < 10; n += 1)
    await log.append(
      partitions.map((partitionId) => ({ partitionId, records: records(1, 'x'.repeat(1_000)) })),
    );
  await log.seal();
  log.gets.length = 0;
  const found = await log.readAll(partitions[7]!);
  const needed = found.reduce((sum, { bytes }) => sum + bytes.length + 64, 0);
  const read = log.gets.slice(1).reduce((sum, { bytes }) => sum + bytes, 0);
  expect(read).toBe(needed);
});

test('partitions that lie mixed and are read together share large read calls', async () => {
  await log.stop();
  await open({ fileBytes: 4 * 1024 * 1024, settings: { 'log.read.range.bytes': '65536' } }, 16);
  for (let n = 0; n < 40; n += 1)
    await log.append(
      partitions.map((partitionId) => ({ partitionId, records: records(1, 'x'.repeat(2_000)) })),
    );
  await log.seal();
  await log.read(partitions[0]!, 0).then(({ release }) => release());
  log.gets.length = 0;
  let bytes = 0;
  for (let offset = 0; offset < 40; offset += 8) {
    for (const partitionId of partitions) {
      const found = await log.read(partitionId, offset, { maxBytes: 17_000 });
      expect(offsetsOf(batchesOf(found))).toEqual(Array.from({ length: 8 }, (_, n) => offset + n));
      bytes += found.bytes;
      found.release();
    }
  }
  // One stretch per 64 KiB, one entry at each border between two, and the first few partitions' own ranges.
  expect(log.gets.length).toBeLessThan((2 * bytes) / 65_536 + 80);
  expect(log.gets.length).toBeLessThan(640 / 4);
});

test('reads that are warmed up together run together, and each is made once', async () => {
  await log.stop();
  await open({ settings: { 'log.read.gap.bytes': '0' } }, 6);
  await log.append(partitions.map((partitionId) => ({ partitionId, records: records(20) })));
  let running = 0;
  let most = 0;
  let calls = 0;
  const reader = log.openReader({
    async read(...args) {
      calls += 1;
      most = Math.max(most, (running += 1));
      await log.source.read(...args);
      running -= 1;
    },
  });
  await loadRecent(reader, log.metadata);
  const requests = partitions.map((partitionId) => {
    return { partitionId, offset: 0, endOffset: 20, maxBytes: 1e6, purpose: 'consumer' } as const;
  });
  reader.warm(requests);
  for (const request of requests) (await reader.read(request)).release();
  expect([calls, most]).toEqual([6, 6]);
  // What fails while warming up is told by the read.
  reader.warm([{ ...requests[0]!, offset: 99 }]);
  await reader.stop();
  await expect(reader.read(requests[0]!)).rejects.toMatchObject({ code: 'cancelled' });
});

test('reads of tables and maintenance leave the consumers’ cache alone', async () => {
  const [a] = partitions as [number];
  await log.append([{ partitionId: a, records: records(1, 'x'.repeat(50_000)) }]);
  await log.readAll(a, { purpose: 'table' });
  expect(log.reader.hotStats).toMatchObject({ loads: 0, usedBytes: 0 });
  await log.readAll(a);
  expect(log.reader.hotStats.loads).toBe(1);
});

test('a plan that went stale is made again, and only real damage is an error', async () => {
  const [a, b] = [partitions[0]!, partitions[1]!];
  const reply = await log.append([
    { partitionId: a, records: records(5) },
    { partitionId: b, records: records(5) },
  ]);
  // The reader believes in an object that is not there; the metadata store knows better.
  const stale = log.openReader();
  stale.follow({
    ...reply,
    objectKey: `${TEST_CLUSTER}/wal/000000000000001-gone.wal`,
    generation: 0,
  });
  expect(offsetsOf(await log.readAll(a, { reader: stale }))).toEqual([0]);
  // A file that was used anew: headers of another generation.
  const wrong = log.openReader();
  wrong.follow({ ...reply, generation: reply.generation + 1 });
  expect(offsetsOf(await log.readAll(a, { reader: wrong }))).toEqual([0]);
  // Damage is found by header or CRC, and told with its place.
  damage(reply.objectKey, 100);
  const fresh = log.openReader();
  fresh.follow(reply);
  await expect(log.read(a, 0, { reader: fresh })).rejects.toMatchObject({ code: 'corrupt' });
  expect(offsetsOf(await log.readAll(b, { reader: fresh }))).toEqual([0]);
});

test('bytes that a source keeps damaged are read past what it keeps, and nobody hears of it', async () => {
  const [a] = partitions as [number];
  const reply = await log.append([{ partitionId: a, records: records(5) }]);
  let isDamaged = true;
  const reader = log.openReader({
    async read(object, reads, options) {
      await log.source.read(object, reads, options);
      if (isDamaged) for (const { into } of reads) into[into.length - 1]! ^= 1;
    },
    distrust(key) {
      expect(key).toBe(reply.objectKey);
      isDamaged = false;
    },
  });
  reader.follow(reply);
  expect(offsetsOf(await log.readAll(a, { reader }))).toEqual([0]);
  expect(isDamaged).toBe(false);
});

function damage(key: string, position: number): void {
  const fd = openSync(join(log.root, key), 'r+');
  writeSync(fd, Buffer.from([0xa5, 0x5a, 0xa5]), 0, 3, position);
  closeSync(fd);
}

test('an offset that no object holds is damage, not silence', async () => {
  const [a] = partitions as [number];
  await log.append([{ partitionId: a, records: records(5) }]);
  const empty = log.openReader();
  await expect(log.read(a, 7, { reader: empty, endOffset: 9 })).rejects.toMatchObject({
    code: 'corrupt',
  });
});

test('the index cache may drop its oldest: they are read from the metadata store', async () => {
  await log.stop();
  await open({ settings: { 'log.read.recent.index.bytes': '65536' } }, 100);
  for (let n = 0; n < 20; n += 1)
    await log.append(partitions.map((partitionId) => ({ partitionId, records: records(1) })));
  for (const partitionId of partitions) expect(await log.readAll(partitionId)).toHaveLength(20);
  await log.seal();
  for (const partitionId of partitions) expect(await log.readAll(partitionId)).toHaveLength(20);
});

test('times are found in entries that the index cache had no room for', async () => {
  await log.stop();
  await open({ settings: { 'log.read.recent.index.bytes': '65536' } }, 100);
  for (let n = 0; n < 20; n += 1)
    await log.append(
      partitions.map((partitionId) => ({ partitionId, records: records(1, 'v', n * 1_000) })),
    );
  const [a] = partitions as [number];
  for (let n = 0; n < 20; n += 1) {
    const range = { logStartOffset: 0, endOffset: 20 };
    expect((await log.reader.offsetForTime(a, n * 1_000, range))?.offset).toBe(n);
    expect(await log.reader.offsetReaching(a, n * 1_000, 0)).toBe(n);
  }
});

test('a file that is sealed during a look-up by time hides nothing', async () => {
  const [a] = partitions as [number];
  for (let n = 0; n < 3; n += 1) {
    await log.append([{ partitionId: a, records: records(1, 'v', n * 1_000) }]);
    if (n === 0) await log.seal();
  }
  const { objects } = log.metadata;
  const ask = objects.entryAtTime.bind(objects);
  objects.entryAtTime = async (...question) => {
    const answer = await ask(...question);
    await log.seal();
    return answer;
  };
  // Retention would else move the log start past a record that is young enough.
  expect(await log.reader.offsetReaching(a, 1_000, 0)).toBe(1);
  expect(await log.reader.offsetReaching(a, 1_000, 0)).toBe(1);
});

test('a reader thread reads the same, and ends', async () => {
  const [a] = partitions as [number];
  for (let n = 0; n < 20; n += 1)
    await log.append([{ partitionId: a, records: records(3, 'x'.repeat(5_000)) }]);
  const expected = await log.readAll(a);
  const thread = startReaderThread({ files: log.root, objects: log.root, direct: true });
  const reader = log.openReader(thread.source);
  await loadRecent(reader, log.metadata);
  expect(await log.readAll(a, { reader })).toEqual(expected);
  const gone = { objectId: 1, key: `${TEST_CLUSTER}/file/000000000000099.wal`, generation: 99 };
  const into = new Uint8Array(new SharedArrayBuffer(10));
  const options = { purpose: 'consumer' } as const;
  await expect(thread.source.read(gone, [{ position: 0, into }], options)).rejects.toMatchObject({
    code: 'not-found',
  });
  await thread.stop();
  await expect(thread.source.read(gone, [{ position: 0, into }], options)).rejects.toMatchObject({
    code: 'unavailable',
  });
});

test('in the reader thread consumers go before tables and maintenance', async () => {
  writeFileSync(join(log.root, 'x'), 'abcdef');
  const { port1, port2 } = new MessageChannel();
  const disk = nodeDisk(log.root);
  // Each purpose reads at a place of its own, so that the order in which reads begin shows.
  const places = ['consumer', 'table', 'maintenance'] as const;
  const order: string[] = [];
  const noted: Disk = {
    ...disk,
    open(name, mode) {
      const file = disk.open(name, mode);
      const pread = file.pread.bind(file);
      return Object.assign(file, {
        preadLater: () => undefined,
        pread(into: Uint8Array, position: number) {
          order.push(places[position]!);
          return pread(into, position);
        },
      });
    },
  };
  new ReaderWorker(port1, { files: noted, objects: noted });
  const source = threadSource(port2);
  const object = { objectId: 1, key: 'x', generation: 0 };
  const read = (purpose: (typeof places)[number], bytes: number) => {
    const into = new Uint8Array(new SharedArrayBuffer(bytes));
    const position = places.indexOf(purpose);
    return source.read(object, [{ position, into }], { purpose }).then(() => into);
  };
  const purposes = ['maintenance', 'table', 'consumer', 'maintenance', 'consumer'] as const;
  await Promise.all(purposes.map((purpose) => read(purpose, 1)));
  expect(order).toEqual(['consumer', 'consumer', 'table', 'maintenance', 'maintenance']);
  const into = await read('consumer', 6);
  expect(Buffer.from(into).toString()).toBe('abcdef');
  await expect(
    source.read(object, [{ position: 3, into }], { purpose: 'table' }),
  ).rejects.toMatchObject({ code: 'corrupt' });
  port2.close();
});

test('the reader thread holds no file open that is gone', async () => {
  writeFileSync(join(log.root, 'x'), 'abcdef');
  const { port1, port2 } = new MessageChannel();
  const disk = nodeDisk(log.root);
  let open = 0;
  const counted: Disk = {
    ...disk,
    open(name, mode) {
      const file = disk.open(name, mode);
      const close = file.close.bind(file);
      file.close = () => {
        open -= 1;
        close();
      };
      open += 1;
      return file;
    },
  };
  new ReaderWorker(port1, { files: counted, objects: counted });
  const source = threadSource(port2);
  const into = new Uint8Array(new SharedArrayBuffer(6));
  const object = { objectId: 1, key: 'x', generation: 0 };
  await source.read(object, [{ position: 0, into }], { purpose: 'consumer' });
  expect(open).toBe(1);
  source.forget!(['x', 'never opened']);
  await vi.waitFor(() => expect(open).toBe(0));
  port2.close();
});

test('a file that goes while it is read is closed after the read, and not read again', async () => {
  const { port1, port2 } = new MessageChannel();
  const events: string[] = [];
  let finish: (() => void) | undefined;
  const file = {
    preadLater: (into: Uint8Array) =>
      new Promise<number>((resolve) => {
        finish = () => resolve(into.length);
      }),
    close: () => events.push('closed'),
  } as unknown as DiskFile;
  const disk = {
    open: () => {
      events.push('opened');
      return file;
    },
  } as unknown as Disk;
  new ReaderWorker(port1, { files: disk, objects: disk });
  const source = threadSource(port2);
  const into = new Uint8Array(new SharedArrayBuffer(6));
  const read = () =>
    source.read({ objectId: 1, key: 'x', generation: 0 }, [{ position: 0, into }], {
      purpose: 'consumer',
    });
  const first = read();
  await vi.waitFor(() => expect(finish).toBeDefined());
  source.forget!(['x']);
  const finishFirst = finish!;
  const second = read();
  await vi.waitFor(() => expect(finish).not.toBe(finishFirst));
  expect(events).toEqual(['opened', 'opened']);
  finishFirst();
  await first;
  expect(events).toEqual(['opened', 'opened', 'closed']);
  finish!();
  await second;
  expect(events).toHaveLength(3);
  port2.close();
});

test('finds the first record at or after a time, to the record, compressed or not', async () => {
  const [a] = partitions as [number];
  const batch = (timestamp: number, compression: number) => ({
    partitionId: a,
    records: records(10, 'v', timestamp),
    compression,
  });
  await log.append([batch(1_000, Compression.NONE)]);
  await log.append([batch(2_000, Compression.GZIP)]);
  await log.seal();
  await log.append([batch(1_500, Compression.NONE)]);
  await log.append([batch(3_000, Compression.LZ4)]);
  const range = { logStartOffset: 0, endOffset: 40 };
  const at = (timestampMs: number, limits = range) =>
    log.reader.offsetForTime(a, timestampMs, limits);
  expect(await at(0)).toEqual({ offset: 0, timestamp: 1_000 });
  expect(await at(1_004)).toEqual({ offset: 4, timestamp: 1_004 });
  expect(await at(1_010)).toEqual({ offset: 10, timestamp: 2_000 });
  expect(await at(2_005)).toEqual({ offset: 15, timestamp: 2_005 });
  expect(await at(2_010)).toEqual({ offset: 30, timestamp: 3_000 });
  expect(await at(3_009)).toEqual({ offset: 39, timestamp: 3_009 });
  expect(await at(3_010)).toBeUndefined();
  expect(await at(3_000, { logStartOffset: 0, endOffset: 30 })).toBeUndefined();
  // The record that reached the time first has expired: the next one that does counts.
  expect(await at(1_504, { logStartOffset: 20, endOffset: 40 })).toEqual({
    offset: 24,
    timestamp: 1_504,
  });
  expect(await at(1_800, { logStartOffset: 20, endOffset: 40 })).toEqual({
    offset: 30,
    timestamp: 3_000,
  });
});

test('finds the largest timestamp, first of equals, also when an even larger one has expired', async () => {
  const [a] = partitions as [number];
  expect(await log.reader.maxTimestamp(a, { logStartOffset: 0, endOffset: 0 })).toBeUndefined();
  const times = [5_000, 9_000, 9_000, 7_000, 8_000, 8_000];
  for (const [n, timestamp] of times.entries()) {
    await log.append([{ partitionId: a, records: [{ value: 'v', timestamp }] }]);
    if (n === 2) await log.seal();
  }
  const largest = (logStartOffset: number, endOffset: number) =>
    log.reader.maxTimestamp(a, { logStartOffset, endOffset });
  expect(await largest(0, 6)).toEqual({ offset: 1, timestamp: 9_000 });
  expect(await largest(2, 6)).toEqual({ offset: 2, timestamp: 9_000 });
  expect(await largest(3, 6)).toEqual({ offset: 4, timestamp: 8_000 });
  expect(await largest(0, 1)).toEqual({ offset: 0, timestamp: 5_000 });
});

test('an aborted read ends, a stopped reader refuses', async () => {
  const [a] = partitions as [number];
  await log.append([{ partitionId: a, records: records(1) }]);
  await expect(log.read(a, 0, { signal: AbortSignal.abort() })).rejects.toThrow();
  await log.reader.stop();
  await expect(log.read(a, 0)).rejects.toMatchObject({ code: 'cancelled' });
});

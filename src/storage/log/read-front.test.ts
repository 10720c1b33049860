// Reads beside other brokers' work on stored objects: which aborted transactions count (L7), and what has expired.
import { expect, test } from 'vitest';
import { FloeError } from '../../base/error.ts';
import type { AbortedTransaction, PartitionLog } from '../../metadata/log.ts';
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { AbortedRanges } from './aborted-ranges.ts';
import type { ColdReader } from './cold-reader.ts';
import { FrontPartitions } from './front-partitions.ts';
import { readFront } from './read-front.ts';
import { ReaderPins } from './reader-pins.ts';
import { SlabPool } from './slab.ts';
import { TailCache } from './tail.ts';
import { testItem } from './test-items.ts';

const PARTITION = 1;
const RANGE = { partitionId: PARTITION, producerId: 7, firstOffset: 0, lastOffset: 4 };

const log = (logStartOffset: number): PartitionLog => ({
  partitionId: PARTITION,
  logStartOffset,
  highWatermark: 10,
  lastStableOffset: 10,
  maxTimestamp: 0,
  sizeBytes: 0,
});

/** A front that remembers one aborted transaction, which the store may have forgotten. */
function setUp({ placed, current = true }: { placed: boolean; current?: boolean }) {
  const stored: AbortedTransaction[] = [];
  const store = { start: 0, expired: false };
  const metadata = {
    abortedTransactions: async () => stored,
    partitions: async () => [log(store.start)],
  };
  const aborted = new AbortedRanges({ metadata });
  aborted.add({ ...RANGE, stableOffset: 5 });
  const slabs = SlabPool.create(65_536, 5);
  const partitions = new FrontPartitions({} as TopicDirectory, [log(0)]);
  const { bytes } = testItem({ partitionId: PARTITION, records: 10 });
  const reader = {
    read: async () => {
      if (store.expired) throw new FloeError('not-found', 'the log begins later now');
      const runs = [{ baseOffset: 0, bytes, patched: placed }];
      return { runs, bytes: bytes.length, placed, release: () => {} };
    },
  } as unknown as ColdReader;
  const read = async (others: boolean) => {
    const request = { partitionId: PARTITION, offset: 0, maxBytes: 1_000 };
    const result = await readFront(
      { partitions: [request], maxBytes: 1_000, isolation: 'read_committed', purpose: 'consumer' },
      {
        partitions,
        aborted,
        tail: new TailCache(slabs, 0),
        pins: new ReaderPins({ slabs, maxSlabs: 1, maxCopyBytes: 1_000 }),
        reader,
        ...(others
          ? {
              others: {
                isCurrent: () => current,
                refreshStart: async () => {
                  partitions.moveLogStarts([log(store.start)]);
                },
              },
            }
          : {}),
      },
    );
    const { errorCode, abortedTransactions, logStartOffset } = result.partitions[0]!;
    return { errorCode, abortedTransactions, logStartOffset };
  };
  return { read, stored, store };
}

const remembered = [{ producerId: 7, firstOffset: 0 }];

test('memory knows which transactions of records as they were written were aborted', async () => {
  const { read } = setUp({ placed: false, current: false });
  expect(await read(true)).toMatchObject({ errorCode: 0, abortedTransactions: remembered });
});

test('of records that were compacted by key elsewhere, only the store knows', async () => {
  const { read, stored } = setUp({ placed: true });
  // The marker is gone: left out by it, everything that its producer wrote later would be missing.
  expect(await read(true)).toMatchObject({ errorCode: 0, abortedTransactions: [] });
  stored.push({ producerId: 9, firstOffset: 3 });
  expect(await read(true)).toMatchObject({ abortedTransactions: stored });
  // A node alone is told before a marker goes.
  expect(await read(false)).toMatchObject({ abortedTransactions: remembered });
});

test('who was cut off for long serves nothing that needs the store’s ranges until it knows more', async () => {
  const { read } = setUp({ placed: true, current: false });
  expect(await read(true)).toMatchObject({
    errorCode: ErrorCode.KAFKA_STORAGE_ERROR,
    abortedTransactions: [],
  });
});

test('what has expired by another broker’s retention is out of range, and the new start is told', async () => {
  const { read, store } = setUp({ placed: true });
  store.start = 6;
  expect(await read(true)).toMatchObject({
    errorCode: ErrorCode.OFFSET_OUT_OF_RANGE,
    logStartOffset: 6,
  });
  const gone = setUp({ placed: false });
  gone.store.start = 6;
  gone.store.expired = true;
  expect(await gone.read(true)).toMatchObject({
    errorCode: ErrorCode.OFFSET_OUT_OF_RANGE,
    logStartOffset: 6,
  });
});

// Micro-benchmarks of the wire layer, in CPU time of this thread: checking a produced batch (CRC32C and a walk over
// its records), decoding Produce and Fetch requests, encoding a Fetch response, the record cursor, the codecs.
//   node bench/protocol.ts [NAME…]      prints min/median/max of several rounds per line; names filter by substring
import { crc32c } from '@node-rs/crc32';
import {
  buildBatch,
  COMPRESSION_NAMES,
  compress,
  decompress,
  encodeRequest,
  encodeResponse,
  FrameDecoder,
  fetchApi,
  openRequest,
  produceApi,
  RecordCursor,
  validateBatches,
} from '../src/protocol/index.ts';

const ROUNDS = 7;
const ROUND_CPU_MICROS = 150_000;

/** Runs `work` until a round has used enough CPU; returns calls per CPU second. */
function callsPerSecond(work: () => void): number {
  let calls = 0;
  let step = 1;
  const start = process.threadCpuUsage();
  for (;;) {
    for (let i = 0; i < step; i += 1) work();
    calls += step;
    const used = process.threadCpuUsage(start);
    const micros = used.user + used.system;
    if (micros >= ROUND_CPU_MICROS) return (calls / micros) * 1e6;
    step = Math.min(step * 2, 1_024);
  }
}

const filters = process.argv.slice(2);

/** Prints one line; `amount` units are done per call. */
function measure(name: string, unit: string, amount: number, work: () => void): void {
  if (filters.length > 0 && !filters.some((filter) => name.includes(filter))) return;
  callsPerSecond(work);
  const rates = Array.from({ length: ROUNDS }, () => callsPerSecond(work) * amount);
  rates.sort((a, b) => a - b);
  const [low, middle, high] = [rates[0]!, rates[ROUNDS >> 1]!, rates[ROUNDS - 1]!];
  const text = [low, middle, high].map((rate) => rate.toPrecision(3).padStart(8)).join(' / ');
  console.log(`${name.padEnd(46)} ${text}  ${unit}`);
}

const NOW = 1_700_000_000_000;
const RULES = {
  maxMessageBytes: 1 << 24,
  maxDecompressedBytes: 1 << 26,
  keysRequired: false,
  timestampType: 'CreateTime',
  nowMs: NOW,
  timestampBeforeMaxMs: Number.POSITIVE_INFINITY,
  timestampAfterMaxMs: 3_600_000,
  produceVersion: 9,
} as const;

function batchOf(valueBytes: number, records: number, compression = 0): Buffer {
  const filler = 'lorem ipsum dolor sit amet, consectetur adipiscing elit; '.repeat(40);
  return buildBatch(
    Array.from({ length: records }, (_, i) => ({
      value: `{"id":${i},"at":${NOW + i * 37},"text":"${filler}`
        .slice(0, valueBytes)
        .padEnd(valueBytes, '.'),
      timestamp: NOW + (i >> 4),
    })),
    { compression },
  );
}

console.log(`${''.padEnd(46)}  min / median / max per CPU second`);

for (const [valueBytes, records] of [
  [1_024, 16],
  [1_024, 64],
  [1_024, 960],
  [100, 160],
  [100, 9_000],
] as const) {
  const batch = batchOf(valueBytes, records);
  const shape = `${records} × ${valueBytes} B`;
  const megabytes = batch.length / 1e6;
  measure(`crc alone, ${shape}`, 'MB', megabytes, () => crc32c(batch.subarray(21)));
  measure(`validate, ${shape}`, 'MB', megabytes, () => {
    if (validateBatches(batch, RULES).errorCode !== 0) throw new Error('refused');
  });
  const cursor = new RecordCursor();
  measure(`cursor, ${shape}`, 'M records', records / 1e6, () => {
    cursor.open(batch);
    while (cursor.next());
  });
}

for (const [type, name] of COMPRESSION_NAMES.entries()) {
  if (type === 0) continue;
  const batch = batchOf(1_024, 64, type);
  measure(`validate, 64 × 1024 B, ${name} (unfolded)`, 'MB', (64 * 1_024) / 1e6, () => {
    if (validateBatches(batch, RULES).errorCode !== 0) throw new Error('refused');
  });
  const plain = batchOf(100, 2_000).subarray(61);
  const packed = compress(type, plain);
  measure(`decompress ${name}, ${plain.length} B`, 'MB', plain.length / 1e6, () => {
    decompress(type, packed, 1 << 26);
  });
}

function frameOf(pieces: Uint8Array[]): Buffer {
  return new FrameDecoder().push(Buffer.concat(pieces))[0]!;
}

function decodeFrame(frame: Buffer): void {
  const { api, version, body } = openRequest(frame);
  api.request.decode(body, version);
}

const topicId = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
const small = batchOf(1_024, 4);
for (const [version, partitions] of [
  [7, 1],
  [9, 16],
  [13, 16],
  [13, 1_000],
] as const) {
  const frame = frameOf(
    encodeRequest({
      api: produceApi,
      version,
      correlationId: 1,
      clientId: 'bench',
      request: {
        acks: -1,
        timeoutMs: 30_000,
        topicData: [
          {
            name: 'topic-of-the-bench',
            topicId,
            partitionData: Array.from({ length: partitions }, (_, index) => ({
              index,
              records: small,
            })),
          },
        ],
      },
    }),
  );
  measure(`decode Produce v${version}, ${partitions} partitions`, 'requests', 1, () =>
    decodeFrame(frame),
  );
}

for (const partitions of [1, 16, 1_000]) {
  const frame = frameOf(
    encodeRequest({
      api: fetchApi,
      version: 17,
      correlationId: 1,
      clientId: 'bench',
      request: {
        maxWaitMs: 500,
        minBytes: 1,
        forgottenTopicsData: [],
        topics: [
          {
            topic: '',
            topicId,
            partitions: Array.from({ length: partitions }, (_, partition) => ({
              partition,
              fetchOffset: 1_000_000 + partition,
              partitionMaxBytes: 1_048_576,
            })),
          },
        ],
      },
    }),
  );
  measure(`decode Fetch v17, ${partitions} partitions`, 'requests', 1, () => decodeFrame(frame));
  const large = [batchOf(1_024, 64)];
  const response = {
    errorCode: 0,
    responses: [
      {
        topic: '',
        topicId,
        partitions: Array.from({ length: partitions }, (_, partitionIndex) => ({
          partitionIndex,
          errorCode: 0,
          highWatermark: 1_000_064,
          lastStableOffset: 1_000_064,
          logStartOffset: 0,
          abortedTransactions: null,
          records: large,
        })),
      },
    ],
  };
  measure(`encode Fetch v17, ${partitions} partitions`, 'responses', 1, () => {
    encodeResponse({ api: fetchApi, version: 17, correlationId: 1, response });
  });
}

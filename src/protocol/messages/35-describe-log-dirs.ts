// DescribeLogDirs (35): sizes of partitions. v2 flexible, v3 a top-level error, v4 volume sizes, v5
// cordoned dirs.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int16, int32, int64, string } from '../fields.ts';

export const describeLogDirsApi = api({
  key: 35,
  name: 'DescribeLogDirs',
  versions: '1-5',
  flexible: '2+',
  request: {
    topics: array({
      topic: string,
      partitions: array(int32),
    }).nullable(),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16.since(3),
    results: array({
      errorCode: int16,
      logDir: string,
      topics: array({
        name: string,
        partitions: array({
          partitionIndex: int32,
          partitionSize: int64,
          offsetLag: int64,
          isFutureKey: bool,
        }),
      }),
      totalBytes: int64.since(4).default(-1),
      usableBytes: int64.since(4).default(-1),
      isCordoned: bool.since(5).default(false),
    }),
  },
});

export interface DescribeLogDirsRequest extends RequestOf<typeof describeLogDirsApi> {}
export interface DescribeLogDirsResponse extends ResponseOf<typeof describeLogDirsApi> {}
export type DescribeLogDirsReply = ReplyOf<typeof describeLogDirsApi>;

// AlterReplicaLogDirs (34): moves replicas between disks; a diskless broker refuses. v2 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, string } from '../fields.ts';

export const alterReplicaLogDirsApi = api({
  key: 34,
  name: 'AlterReplicaLogDirs',
  versions: '1-2',
  flexible: '2+',
  request: {
    dirs: array({
      path: string,
      topics: array({
        name: string,
        partitions: array(int32),
      }),
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    results: array({
      topicName: string,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
      }),
    }),
  },
});

export interface AlterReplicaLogDirsRequest extends RequestOf<typeof alterReplicaLogDirsApi> {}
export interface AlterReplicaLogDirsResponse extends ResponseOf<typeof alterReplicaLogDirsApi> {}
export type AlterReplicaLogDirsReply = ReplyOf<typeof alterReplicaLogDirsApi>;

// FindCoordinator (10): which broker coordinates a group or a transactional id. Key types: 0 group,
// 1 transaction (v1), 2 share partition (v6). v3 flexible, v4 many keys a request (KIP-699).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int8, int16, int32, string } from '../fields.ts';

export const findCoordinatorApi = api({
  key: 10,
  name: 'FindCoordinator',
  versions: '0-6',
  flexible: '3+',
  request: {
    key: string.in('0-3'),
    keyType: int8.since(1).default(0),
    coordinatorKeys: array(string).since(4),
  },
  response: {
    throttleTimeMs: int32.since(1).default(0),
    errorCode: int16.in('0-3'),
    errorMessage: string.in('1-3').nullable(),
    nodeId: int32.in('0-3'),
    host: string.in('0-3'),
    port: int32.in('0-3'),
    coordinators: array({
      key: string,
      nodeId: int32,
      host: string,
      port: int32,
      errorCode: int16,
      errorMessage: string.nullable(),
    }).since(4),
  },
});

export interface FindCoordinatorRequest extends RequestOf<typeof findCoordinatorApi> {}
export interface FindCoordinatorResponse extends ResponseOf<typeof findCoordinatorApi> {}
export type FindCoordinatorReply = ReplyOf<typeof findCoordinatorApi>;

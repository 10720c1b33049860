// Heartbeat (12): a classic member is alive; the answer may say REBALANCE_IN_PROGRESS. v3 static
// members, v4 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { int16, int32, string } from '../fields.ts';

export const heartbeatApi = api({
  key: 12,
  name: 'Heartbeat',
  versions: '0-4',
  flexible: '4+',
  request: {
    groupId: string,
    generationId: int32,
    memberId: string,
    groupInstanceId: string.since(3).nullable().default(null),
  },
  response: {
    throttleTimeMs: int32.since(1).default(0),
    errorCode: int16,
  },
});

export interface HeartbeatRequest extends RequestOf<typeof heartbeatApi> {}
export interface HeartbeatResponse extends ResponseOf<typeof heartbeatApi> {}
export type HeartbeatReply = ReplyOf<typeof heartbeatApi>;

// PushTelemetry (72): client metrics, OTLP inside (KIP-714).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { bool, bytes, int8, int16, int32, uuid } from '../fields.ts';

export const pushTelemetryApi = api({
  key: 72,
  name: 'PushTelemetry',
  versions: '0',
  flexible: '0+',
  request: {
    clientInstanceId: uuid,
    subscriptionId: int32,
    terminating: bool,
    compressionType: int8,
    metrics: bytes,
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
  },
});

export interface PushTelemetryRequest extends RequestOf<typeof pushTelemetryApi> {}
export interface PushTelemetryResponse extends ResponseOf<typeof pushTelemetryApi> {}
export type PushTelemetryReply = ReplyOf<typeof pushTelemetryApi>;

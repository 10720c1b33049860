// GetTelemetrySubscriptions (71): which client metrics we want pushed (KIP-714).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int8, int16, int32, string, uuid } from '../fields.ts';

export const getTelemetrySubscriptionsApi = api({
  key: 71,
  name: 'GetTelemetrySubscriptions',
  versions: '0',
  flexible: '0+',
  request: {
    clientInstanceId: uuid,
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    clientInstanceId: uuid,
    subscriptionId: int32,
    acceptedCompressionTypes: array(int8),
    pushIntervalMs: int32,
    telemetryMaxBytes: int32,
    deltaTemporality: bool,
    requestedMetrics: array(string),
  },
});

export interface GetTelemetrySubscriptionsRequest
  extends RequestOf<typeof getTelemetrySubscriptionsApi> {}
export interface GetTelemetrySubscriptionsResponse
  extends ResponseOf<typeof getTelemetrySubscriptionsApi> {}
export type GetTelemetrySubscriptionsReply = ReplyOf<typeof getTelemetrySubscriptionsApi>;

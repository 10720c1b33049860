// GetTelemetrySubscriptions (71), version 0 (KIP-714): which metrics the client is to push and how often, by the
// CLIENT_METRICS subscriptions that match it. A client that asks again before its interval is over is refused.

import { ZERO_UUID } from '../../protocol/fields.ts';
import { getTelemetrySubscriptionsApi } from '../../protocol/messages/71-get-telemetry-subscriptions.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { ACCEPTED_COMPRESSION } from '../telemetry/client-telemetry.ts';
import type { ClientFacts } from '../telemetry/match.ts';

export const getTelemetrySubscriptionsHandler: Handler<typeof getTelemetrySubscriptionsApi> = {
  api: getTelemetrySubscriptionsApi,
  versions: { min: 0, max: 0 },
  handle({ clientInstanceId }, context) {
    const { telemetry, config } = context.services;
    const found = telemetry.subscription(clientFacts(context, clientInstanceId));
    const common = {
      acceptedCompressionTypes: ACCEPTED_COMPRESSION,
      telemetryMaxBytes: config.values['telemetry.max.bytes'],
      deltaTemporality: true,
    };
    if (typeof found === 'number') {
      context.countError(found);
      const nothing = { subscriptionId: 0, pushIntervalMs: 0, requestedMetrics: [] };
      return { ...common, ...nothing, errorCode: found, clientInstanceId: ZERO_UUID };
    }
    const { id, told } = found;
    return {
      ...common,
      errorCode: 0,
      clientInstanceId: id,
      subscriptionId: told.id,
      pushIntervalMs: told.intervalMs,
      requestedMetrics: told.metrics,
    };
  },
};

/** What subscriptions can match a client by. */
export function clientFacts(
  { clientId, connection }: RequestContext,
  clientInstanceId: string,
): ClientFacts {
  return {
    client_instance_id: clientInstanceId,
    client_id: clientId ?? '',
    client_software_name: connection.client.name,
    client_software_version: connection.client.version,
    client_source_address: connection.remoteAddress,
    client_source_port: String(connection.remotePort),
  };
}

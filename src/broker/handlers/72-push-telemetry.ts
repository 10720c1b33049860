// PushTelemetry (72), version 0 (KIP-714): metrics of a client, OTLP and compressed as told. They show in /metrics.
import { pushTelemetryApi } from '../../protocol/messages/72-push-telemetry.ts';
import type { Handler } from '../handler.ts';
import { clientFacts } from './71-get-telemetry-subscriptions.ts';

export const pushTelemetryHandler: Handler<typeof pushTelemetryApi> = {
  api: pushTelemetryApi,
  versions: { min: 0, max: 0 },
  inPlace: true,
  handle({ clientInstanceId, ...push }, context) {
    const facts = clientFacts(context, clientInstanceId);
    const errorCode = context.services.telemetry.push(facts, push);
    if (errorCode !== 0) context.countError(errorCode);
    return { errorCode };
  },
};

// Settings of client telemetry (KIP-714), under Kafka's name where Kafka has one. What clients push, and how often, is
// set by CLIENT_METRICS configs (kafka-client-metrics.sh).
import { int, type Settings, type Values } from '../../base/settings.ts';

export const telemetrySettings = {
  'telemetry.max.bytes': int({
    default: 1_048_576,
    min: 1,
    max: 16_777_216,
    doc: 'Largest push of client metrics, compressed or not. Clients are told it.',
  }),
  'telemetry.max.clients': int({
    default: 1_000,
    min: 1,
    max: 16_384,
    doc: 'Clients whose metrics are kept at a time; the longest silent one gives way to a new one.',
  }),
  'telemetry.max.series': int({
    default: 200,
    min: 1,
    max: 10_000,
    doc: 'Series kept per client for /metrics; what a client pushes beyond is counted and dropped.',
  }),
} as const satisfies Settings;

export type TelemetrySettings = Values<typeof telemetrySettings>;

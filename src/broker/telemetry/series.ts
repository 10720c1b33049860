// Metrics that clients pushed, kept as Prometheus series: the newest gauge, the running total of a sum. Bounded per
// client; names and labels of clients are made plain before they are kept. Not for: which clients (client-telemetry.ts).
import type { MetricPoint } from './otlp.ts';

/** One client's series. */
export interface ClientSeries {
  readonly labels: string;
  readonly byKey: Map<string, Series>;
}

interface Series {
  readonly metric: string;
  readonly type: 'gauge' | 'counter';
  readonly labels: string;
  value: number;
}

const MAX_NAME = 128;
const MAX_LABEL_VALUE = 128;

/** Adds points; how many had no room. */
export function keepPoints(
  { byKey }: ClientSeries,
  points: readonly MetricPoint[],
  maxSeries: number,
): number {
  let dropped = 0;
  for (const point of points) {
    const labels = labelText(point.attributes);
    const key = `${point.name} ${labels}`;
    let series = byKey.get(key);
    if (series === undefined) {
      if (byKey.size >= maxSeries) {
        dropped += 1;
        continue;
      }
      const type = point.kind !== 'gauge' && point.monotonic ? 'counter' : 'gauge';
      series = { metric: metricName(point.name, type), type, labels, value: 0 };
      byKey.set(key, series);
    }
    series.value = point.kind === 'delta' ? series.value + point.value : point.value;
  }
  return dropped;
}

/** All series as Prometheus reads them, by metric; a type that two clients disagree on is untyped. */
export function renderSeries(clients: Iterable<ClientSeries>): string {
  const byMetric = new Map<string, { types: Set<string>; lines: string[] }>();
  for (const { labels: ofClient, byKey } of clients) {
    for (const { metric, type, labels, value } of byKey.values()) {
      let found = byMetric.get(metric);
      if (found === undefined) {
        found = { types: new Set(), lines: [] };
        byMetric.set(metric, found);
      }
      found.types.add(type);
      const all = labels === '' ? ofClient : `${ofClient},${labels}`;
      found.lines.push(`${metric}{${all}} ${valueText(value)}`);
    }
  }
  const blocks = [...byMetric].map(([metric, { types, lines }]) => {
    const type = types.size === 1 ? [...types][0] : 'untyped';
    return `# HELP ${metric} Pushed by clients (KIP-714)\n# TYPE ${metric} ${type}\n${lines.join('\n')}\n`;
  });
  return blocks.join('');
}

/** `org.apache.kafka.producer.record.queue.time.max` → `floe_client_producer_record_queue_time_max`. */
export function metricName(name: string, type: 'gauge' | 'counter'): string {
  const short = name.replace(/^org\.apache\.kafka\./, '').slice(0, MAX_NAME);
  const plain = `floe_client_${short.replaceAll(/[^a-zA-Z0-9]+/g, '_')}`;
  return type === 'counter' && !plain.endsWith('_total') ? `${plain}_total` : plain;
}

/** Labels in Prometheus' syntax, names plain and values cut and quoted; each name once. */
export function labelText(labels: readonly (readonly [name: string, value: string])[]): string {
  const seen = new Set<string>();
  const parts: string[] = [];
  for (const [name, value] of labels) {
    const plain = name.slice(0, MAX_NAME).replaceAll(/[^a-zA-Z0-9]+/g, '_');
    // Names that begin with two underscores, or a digit, are not for us.
    if (plain === '' || /^(__|\d)/.test(plain) || seen.has(plain)) continue;
    seen.add(plain);
    const quoted = value
      .slice(0, MAX_LABEL_VALUE)
      .replaceAll('\\', '\\\\')
      .replaceAll('"', '\\"')
      .replaceAll('\n', '\\n');
    parts.push(`${plain}="${quoted}"`);
  }
  return parts.join(',');
}

function valueText(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : String(value);
}

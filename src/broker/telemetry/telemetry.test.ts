// Client metrics from subscription to /metrics, the order of refusals, hostile pushes, and bounds.
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { isFloeError } from '../../base/error.ts';
import { PrometheusMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { Compression, compress } from '../../protocol/codecs.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import { ResourceConfigs } from '../resource-configs.ts';
import { ClientTelemetry, type Push } from './client-telemetry.ts';
import { type ClientFacts, isMatch, parseMatch } from './match.ts';
import { decodeMetrics } from './otlp.ts';
import { metricName } from './series.ts';
import { gauge, message, metricsData, sum } from './testing.ts';

const settings = {
  'telemetry.max.bytes': 100_000,
  'telemetry.max.clients': 3,
  'telemetry.max.series': 4,
};

let clock: ManualClock;
let configs: ResourceConfigs;
let metrics: PrometheusMetrics;
let telemetry: ClientTelemetry;

beforeEach(async () => {
  clock = new ManualClock();
  configs = await ResourceConfigs.load(openSqliteMetadata(':memory:').resourceConfigs);
  metrics = new PrometheusMetrics();
  const ids = seededIds(seededPrng(3));
  telemetry = new ClientTelemetry({ configs, settings: () => settings, clock, ids, metrics });
});

const subscribe = (name: string, config: Readonly<Record<string, string | null>>) =>
  configs.alter('client-metrics', name, config);

const facts = (id = ZERO_UUID, more: Partial<ClientFacts> = {}): ClientFacts => ({
  client_instance_id: id,
  client_id: 'app-1',
  client_software_name: 'apache-kafka-java',
  client_software_version: '4.3.1',
  client_source_address: '10.0.0.1',
  client_source_port: '40000',
  ...more,
});

/** What a client is told. */
function ask(id = ZERO_UUID, more: Partial<ClientFacts> = {}) {
  const found = telemetry.subscription(facts(id, more));
  if (typeof found === 'number') throw new Error(`refused with ${found}`);
  return found;
}

function push(id: string, metricsBytes: Uint8Array, more: Partial<Push> = {}): number {
  const subscriptionId = more.subscriptionId ?? lastSubscriptionId;
  return telemetry.push(facts(id), {
    subscriptionId,
    terminating: false,
    compressionType: Compression.NONE,
    metrics: metricsBytes,
    ...more,
  });
}

let lastSubscriptionId = 0;

/** A client that has been told its subscription. */
function client(): string {
  const { id, told } = ask();
  lastSubscriptionId = told.id;
  return id;
}

describe('a subscription', () => {
  it('asks for nothing where none matches, and every five minutes', () => {
    const { id, told } = ask();
    expect(id).not.toBe(ZERO_UUID);
    expect(told).toMatchObject({ metrics: [], intervalMs: 300_000 });
  });

  it('puts together all that match, with the shortest interval', async () => {
    await subscribe('a', { metrics: 'org.b.,org.a.', 'interval.ms': '60000' });
    await subscribe('b', { metrics: 'org.c.', 'interval.ms': '1000', match: 'client_id=app-.*' });
    await subscribe('c', { metrics: 'org.d.', match: 'client_id=other' });
    expect(ask().told).toMatchObject({
      metrics: ['org.a.', 'org.b.', 'org.c.'],
      intervalMs: 1_000,
    });
    await subscribe('d', { metrics: '*' });
    expect(ask().told.metrics).toEqual(['*']);
  });

  it('has an id of its content and the client, the same after a restart', async () => {
    await subscribe('a', { metrics: 'org.a.', 'interval.ms': '1000' });
    const { id, told } = ask();
    expect(Number.isInteger(told.id) && Math.abs(told.id) <= 2 ** 31).toBe(true);
    expect(ask().told.id).not.toBe(told.id);
    const ids = seededIds(seededPrng(4));
    telemetry = new ClientTelemetry({ configs, settings: () => settings, clock, ids, metrics });
    expect(ask(id).told.id).toBe(told.id);
    await subscribe('a', { metrics: 'org.b.' });
    expect(ask(id).told.id).not.toBe(told.id);
  });

  it('is asked for once an interval, and at once when it changed', async () => {
    await subscribe('a', { metrics: 'org.a.', 'interval.ms': '1000' });
    const { id } = ask();
    expect(telemetry.subscription(facts(id))).toBe(ErrorCode.THROTTLING_QUOTA_EXCEEDED);
    await clock.advance(1_000);
    ask(id);
    await subscribe('a', { metrics: 'org.b.' });
    expect(ask(id).told.metrics).toEqual(['org.b.']);
  });
});

describe('a match', () => {
  it('is of all its patterns, each as a whole', () => {
    const text = 'client_software_name=apache.*, client_source_port=4\\d+';
    expect(isMatch(parseMatch(text), facts())).toBe(true);
    expect(isMatch(parseMatch(`${text},client_id=app`), facts())).toBe(false);
    expect(isMatch(parseMatch(''), facts())).toBe(true);
  });

  it.each(['client_id', 'client_id=', 'color=red', 'client_id=a=b', 'client_id=['])(
    'refuses "%s"',
    (text) => expect(() => parseMatch(text)).toThrow(/illegal client match/),
  );
});

describe('a push', () => {
  beforeEach(() => subscribe('a', { metrics: '*', 'interval.ms': '1000' }));

  const some = metricsData(gauge('org.apache.kafka.producer.connection.count', { value: 2 }));

  it('shows in /metrics: newest gauges, totals of deltas, cumulative sums as they are', async () => {
    const id = client();
    const bytes = metricsData(
      gauge('org.apache.kafka.producer.queue', { value: 7, attributes: { 'node.id': '1"\\\n' } }),
      sum('org.apache.kafka.producer.sent', 1, { value: 5 }),
      sum('org.apache.kafka.producer.age', 2, { value: 100 }),
    );
    for (let n = 0; n < 2; n += 1) {
      expect(push(id, bytes)).toBe(0);
      await clock.advance(1_000);
    }
    const labels = `client_id="app-1",client_instance_id="${id}",client_software_name="apache-kafka-java",client_software_version="4.3.1"`;
    const text = await metrics.render();
    expect(text).toContain(
      `# TYPE floe_client_producer_queue gauge\nfloe_client_producer_queue{${labels},node_id="1\\"\\\\\\n"} 7\n`,
    );
    expect(text).toContain(`floe_client_producer_sent_total{${labels}} 10\n`);
    expect(text).toContain(`floe_client_producer_age_total{${labels}} 100\n`);
    expect(text).toContain('floe_telemetry_clients 1');
    expect(text).toContain('floe_telemetry_pushes_total{outcome="taken"} 2');
  });

  it.each([Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])(
    'may be compressed by codec %d',
    (compressionType) => {
      expect(push(client(), compress(compressionType, some), { compressionType })).toBe(0);
      expect(telemetry.render()).toContain('floe_client_producer_connection_count');
    },
  );

  it('is refused in Kafka’s order: ended, too early, old subscription, codec, size', async () => {
    const id = client();
    const subscriptionId = lastSubscriptionId + 1;
    const bad = { subscriptionId, compressionType: 9 };
    const large = new Uint8Array(100_001);
    expect(push(id, large, bad)).toBe(ErrorCode.UNKNOWN_SUBSCRIPTION_ID);
    expect(push(id, large, bad)).toBe(ErrorCode.THROTTLING_QUOTA_EXCEEDED);
    await clock.advance(1_000);
    expect(push(id, large, { compressionType: 9 })).toBe(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE);
    await clock.advance(1_000);
    expect(push(id, large)).toBe(ErrorCode.TELEMETRY_TOO_LARGE);
    expect(push(id, some, { terminating: true })).toBe(0);
    expect(push(id, some)).toBe(ErrorCode.INVALID_REQUEST);
    expect(push(ZERO_UUID, some)).toBe(ErrorCode.INVALID_REQUEST);
  });

  it('lets a client ask again at once after an unknown subscription', () => {
    const id = client();
    push(id, some, { subscriptionId: lastSubscriptionId + 1 });
    expect(ask(id).told.id).toBe(lastSubscriptionId);
  });

  it('too large once unfolded, or no OTLP, is refused and leaves nothing', async () => {
    const id = client();
    const zeros = compress(Compression.ZSTD, new Uint8Array(10_000_000));
    const bomb = push(id, zeros, { compressionType: Compression.ZSTD });
    expect(bomb).toBe(ErrorCode.TELEMETRY_TOO_LARGE);
    await clock.advance(1_000);
    expect(push(id, Buffer.from('no protocol buffer'))).toBe(ErrorCode.INVALID_RECORD);
    await clock.advance(1_000);
    expect(push(id, zeros, { compressionType: Compression.GZIP })).toBe(ErrorCode.INVALID_RECORD);
    expect(telemetry.render()).toBe('');
  });
});

describe('bounds', () => {
  beforeEach(() => subscribe('a', { metrics: '*', 'interval.ms': '1000' }));

  it('hold for series of a client', async () => {
    const points = Array.from({ length: 10 }, (_, n) => ({
      value: n,
      attributes: { partition: String(n) },
    }));
    push(client(), metricsData(gauge('org.x', ...points)));
    expect(telemetry.render().match(/^floe_client_org_x\{/gm)).toHaveLength(4);
    expect(await metrics.render()).toContain('floe_telemetry_dropped_points_total 6');
  });

  it('hold for clients: the longest silent one goes, and all that are silent too long', async () => {
    const point = metricsData(gauge('org.x', { value: 1 }));
    const ids = Array.from({ length: 3 }, () => {
      const id = client();
      push(id, point);
      return id;
    });
    // Heard of again, the first is no longer the longest silent.
    telemetry.subscription(facts(ids[0]!));
    client();
    const shown = ids.map((id) => telemetry.render().includes(id));
    expect(shown).toEqual([true, false, true]);
    expect(await metrics.render()).toContain('floe_telemetry_clients 3');
    await clock.advance(120_000);
    expect(await metrics.render()).toContain('floe_telemetry_clients 0');
    expect(telemetry.render()).toBe('');
  });
});

describe('OTLP', () => {
  it('leaves out other kinds of metrics and points without a value', () => {
    const histogram = message([1, Buffer.from('org.h')], [9, message()]);
    const empty = message([1, Buffer.from('org.e')], [5, message([1, message()])]);
    expect(decodeMetrics(metricsData(histogram, empty))).toEqual({ points: [], leftOut: 2 });
  });

  it('never does more to hostile bytes than refuse them', () => {
    const good = metricsData(
      gauge('org.a', { value: 1, attributes: { a: 'b' } }),
      sum('org.b', 1, { value: 2 }),
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { maxLength: 4 }),
        fc.nat(good.length),
        (changes, length) => {
          const bytes = Uint8Array.from(good.subarray(0, length));
          for (const [at, value] of changes) if (at < length) bytes[at] = value;
          try {
            decodeMetrics(bytes);
          } catch (caught) {
            if (!isFloeError(caught, 'corrupt', 'exhausted')) throw caught;
          }
        },
      ),
      { seed: 11, numRuns: 500 },
    );
  });

  it('names metrics so that Prometheus takes them', () => {
    expect(metricName('org.apache.kafka.consumer.fetch.latency.avg', 'gauge')).toBe(
      'floe_client_consumer_fetch_latency_avg',
    );
    expect(metricName('näme {x} 1', 'counter')).toMatch(/^floe_client_[a-zA-Z0-9_]+_total$/);
  });
});

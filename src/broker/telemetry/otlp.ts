// OpenTelemetry metrics as clients push them (OTLP `MetricsData`): sums and gauges, the two kinds that Kafka's clients
// send. Other kinds are counted and left out. Not for: keeping or showing them (series.ts).
import { FloeError } from '../../base/error.ts';
import { ProtoReader } from './protobuf.ts';

/** One value of a metric. */
export interface MetricPoint {
  readonly name: string;
  /** `delta` and `cumulative` are sums; a gauge replaces what was there. */
  readonly kind: 'gauge' | 'delta' | 'cumulative';
  readonly monotonic: boolean;
  readonly attributes: readonly (readonly [name: string, value: string])[];
  readonly value: number;
}

export interface DecodedMetrics {
  readonly points: readonly MetricPoint[];
  /** Metrics of kinds that are not kept, and points without a value. */
  readonly leftOut: number;
}

/** Most points of one push. */
const MAX_POINTS = 20_000;

/** Attributes of one point beyond these are left out. */
const MAX_ATTRIBUTES = 8;

const DELTA = 1;

/** @throws FloeError `corrupt` when the bytes aren't OTLP, `exhausted` when there are too many points. */
export function decodeMetrics(bytes: Uint8Array): DecodedMetrics {
  const into: Gathered = { points: [], leftOut: 0 };
  // MetricsData.resource_metrics → scope_metrics → metrics.
  eachMessage(new ProtoReader(bytes), 1, (resource) =>
    eachMessage(resource, 2, (scope) => eachMessage(scope, 2, (metric) => read(metric, into))),
  );
  return into;
}

interface Gathered {
  readonly points: MetricPoint[];
  leftOut: number;
}

/** Calls `action` for each message in `field`; other fields are skipped. */
function eachMessage(
  reader: ProtoReader,
  field: number,
  action: (inner: ProtoReader) => void,
): void {
  for (let found = reader.next(); found !== 0; found = reader.next()) {
    if (found === field) action(reader.message());
    else reader.skip();
  }
}

const METRIC = { name: 1, gauge: 5, sum: 7 } as const;
/** Histogram, exponential histogram, summary. */
const OTHER_KINDS: readonly number[] = [9, 10, 11];

function read(metric: ProtoReader, into: Gathered): void {
  let name = '';
  const bodies: [kind: 'gauge' | 'sum', body: ProtoReader][] = [];
  for (let field = metric.next(); field !== 0; field = metric.next()) {
    if (field === METRIC.name) name = metric.string();
    else if (field === METRIC.gauge) bodies.push(['gauge', metric.message()]);
    else if (field === METRIC.sum) bodies.push(['sum', metric.message()]);
    else {
      if (OTHER_KINDS.includes(field)) into.leftOut += 1;
      metric.skip();
    }
  }
  for (const [kind, body] of bodies) readBody(name, kind, body, into);
}

/** Gauge and Sum have their points in field 1; Sum has temporality in 2, monotonicity in 3. */
function readBody(name: string, type: 'gauge' | 'sum', body: ProtoReader, into: Gathered): void {
  let temporality = 0;
  let monotonic = false;
  const points: ProtoReader[] = [];
  for (let field = body.next(); field !== 0; field = body.next()) {
    if (field === 1) points.push(body.message());
    else if (field === 2 && type === 'sum') temporality = body.varint();
    else if (field === 3 && type === 'sum') monotonic = body.varint() !== 0;
    else body.skip();
  }
  const sum = temporality === DELTA ? 'delta' : 'cumulative';
  for (const reader of points) {
    const point = readPoint(reader);
    if (point === undefined) into.leftOut += 1;
    else into.points.push({ name, kind: type === 'gauge' ? 'gauge' : sum, monotonic, ...point });
    if (into.points.length > MAX_POINTS) {
      throw new FloeError('exhausted', `more than ${MAX_POINTS} points in one push`);
    }
  }
}

const POINT = { double: 4, int: 6, attributes: 7 } as const;

function readPoint(reader: ProtoReader): Pick<MetricPoint, 'attributes' | 'value'> | undefined {
  let value: number | undefined;
  const attributes: [string, string][] = [];
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === POINT.double) value = reader.double();
    else if (field === POINT.int) value = reader.sfixed64();
    else if (field === POINT.attributes && attributes.length < MAX_ATTRIBUTES) {
      attributes.push(readAttribute(reader.message()));
    } else reader.skip();
  }
  return value === undefined ? undefined : { attributes, value };
}

function readAttribute(reader: ProtoReader): [string, string] {
  let name = '';
  let value = '';
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) name = reader.string();
    else if (field === 2) value = readValue(reader.message());
    else reader.skip();
  }
  return [name, value];
}

const VALUE = { string: 1, bool: 2, int: 3, double: 4 } as const;

/** AnyValue: scalars as text, lists and maps as nothing. */
function readValue(reader: ProtoReader): string {
  let text = '';
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === VALUE.string) text = reader.string();
    else if (field === VALUE.bool) text = reader.varint() === 0 ? 'false' : 'true';
    else if (field === VALUE.int) text = String(reader.varint());
    else if (field === VALUE.double) text = String(reader.double());
    else reader.skip();
  }
  return text;
}

// What the requests of all connections cost, gathered in plain arrays and told to the metrics once a second:
// a labelled counter per request would cost as much as a small request does.
import type { Clock, Timer } from '../base/clock.ts';
import type { Metrics } from '../base/metrics.ts';
import { kafkaError } from '../protocol/errors.ts';

const FLUSH_MS = 1_000;

/** Stages of a request in the order in which they pass. */
export type Stage = 'queue' | 'handle' | 'send';

interface ApiStats {
  readonly api: string;
  requests: number;
  bytesIn: number;
  bytesOut: number;
  readonly stageSeconds: Record<Stage, number>;
  readonly errors: Map<number, number>;
  throttled: number;
  throttleSeconds: number;
}

/** Durations of one request in milliseconds. */
export interface RequestTimes {
  /** From the last byte's arrival until its handler was called. */
  readonly queueMs: number;
  /** Until the reply was encoded; for Produce and Fetch this holds the log's work, or the wait. */
  readonly handleMs: number;
  /** Until the kernel had the last byte; holds the wait for earlier replies of the connection. */
  readonly sendMs: number;
}

export class RequestStats {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #byApi = new Map<string, ApiStats>();
  #timer: Timer | undefined;

  constructor(metrics: Metrics, clock: Clock) {
    this.#metrics = metrics;
    this.#clock = clock;
  }

  request(api: string, bytesIn: number): void {
    const stats = this.#of(api);
    stats.requests += 1;
    stats.bytesIn += bytesIn;
  }

  reply(api: string, bytesOut: number, { queueMs, handleMs, sendMs }: RequestTimes): void {
    const stats = this.#of(api);
    stats.bytesOut += bytesOut;
    stats.stageSeconds.queue += queueMs / 1_000;
    stats.stageSeconds.handle += handleMs / 1_000;
    stats.stageSeconds.send += sendMs / 1_000;
    const name = 'floe_broker_request_seconds';
    const total = (queueMs + handleMs + sendMs) / 1_000;
    this.#metrics.seconds(name, 'Time from a request’s last byte to its reply’s', total, { api });
  }

  error(api: string, code: number): void {
    const { errors } = this.#of(api);
    errors.set(code, (errors.get(code) ?? 0) + 1);
  }

  /** A reply that told its client to wait. */
  throttled(api: string, ms: number): void {
    const stats = this.#of(api);
    stats.throttled += 1;
    stats.throttleSeconds += ms / 1_000;
  }

  /** Tells the metrics what was gathered; called by a timer while there is something, and at the end. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const stats of this.#byApi.values()) this.#tell(stats);
    this.#byApi.clear();
  }

  #of(api: string): ApiStats {
    let stats = this.#byApi.get(api);
    if (stats === undefined) {
      const stageSeconds = { queue: 0, handle: 0, send: 0 };
      stats = {
        api,
        requests: 0,
        bytesIn: 0,
        bytesOut: 0,
        stageSeconds,
        errors: new Map(),
        throttled: 0,
        throttleSeconds: 0,
      };
      this.#byApi.set(api, stats);
      this.#timer ??= this.#clock.setTimer(FLUSH_MS, () => this.flush());
    }
    return stats;
  }

  #tell(stats: ApiStats): void {
    const { api, requests, bytesIn, bytesOut, stageSeconds, errors } = stats;
    const count = this.#metrics.count.bind(this.#metrics);
    count('floe_broker_requests_total', 'Requests by API', { api }, requests);
    count('floe_broker_received_bytes_total', 'Bytes of requests by API', { api }, bytesIn);
    count('floe_broker_sent_bytes_total', 'Bytes of replies by API', { api }, bytesOut);
    for (const [stage, seconds] of Object.entries(stageSeconds)) {
      const help = 'Time spent by requests in each stage';
      count('floe_broker_stage_seconds_total', help, { api, stage }, seconds);
    }
    if (stats.throttled > 0) {
      const help = 'Replies that told a client to wait, by API';
      count('floe_broker_throttled_total', help, { api }, stats.throttled);
      const helpTime = 'Time that clients were told to wait, by API';
      count('floe_broker_throttle_seconds_total', helpTime, { api }, stats.throttleSeconds);
    }
    for (const [code, times] of errors) {
      const labels = { api, error: kafkaError(code).name };
      count('floe_broker_errors_total', 'Error codes in replies by API', labels, times);
    }
  }
}

// Counters, gauges and histograms behind a narrow interface, so that no module knows Prometheus.
// Names follow Prometheus' rules: floe_<area>_<what>_<unit>[_total]. Labels are bounded sets, never client input.
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

export type Labels = Readonly<Record<string, string>>;

export interface Metrics {
  /** Adds to a counter, `by` 1 if not said. */
  count(name: string, help: string, labels?: Labels, by?: number): void;
  /** Sets a gauge. */
  gauge(name: string, help: string, value: number, labels?: Labels): void;
  /** A gauge read when scraped; a second registration under the same name and labels replaces the first. */
  observeGauge(name: string, help: string, read: () => number): void;
  /** Text in Prometheus' format, made when scraped, of metrics under names that no other method uses. */
  expose(render: () => string): void;
  /** Records a duration in seconds in a histogram. */
  seconds(name: string, help: string, value: number, labels?: Labels): void;
}

/** The registry behind `/metrics`. */
export class PrometheusMetrics implements Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #histograms = new Map<string, Histogram>();
  readonly #exposed: (() => string)[] = [];

  count(name: string, help: string, labels: Labels = {}, by = 1): void {
    let counter = this.#counters.get(name);
    if (counter === undefined) {
      counter = new Counter({
        name,
        help,
        labelNames: Object.keys(labels),
        registers: [this.#registry],
      });
      this.#counters.set(name, counter);
    }
    counter.inc(labels, by);
  }

  gauge(name: string, help: string, value: number, labels: Labels = {}): void {
    let gauge = this.#gauges.get(name);
    if (gauge === undefined) {
      gauge = new Gauge({
        name,
        help,
        labelNames: Object.keys(labels),
        registers: [this.#registry],
      });
      this.#gauges.set(name, gauge);
    }
    gauge.set(labels, value);
  }

  observeGauge(name: string, help: string, read: () => number): void {
    this.#registry.removeSingleMetric(name);
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.set(read());
      },
    });
  }

  expose(render: () => string): void {
    this.#exposed.push(render);
  }

  seconds(name: string, help: string, value: number, labels: Labels = {}): void {
    let histogram = this.#histograms.get(name);
    if (histogram === undefined) {
      histogram = new Histogram({
        name,
        help,
        labelNames: Object.keys(labels),
        buckets: [
          0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
        ],
        registers: [this.#registry],
      });
      this.#histograms.set(name, histogram);
    }
    histogram.observe(labels, value);
  }

  /** The text of `/metrics` (Prometheus exposition format). */
  async render(): Promise<string> {
    const texts = this.#exposed.map((render) => render()).filter((text) => text !== '');
    return [await this.#registry.metrics(), ...texts].join('\n');
  }
}

/** Records nothing. */
export const noMetrics: Metrics = {
  count() {},
  gauge() {},
  observeGauge() {},
  expose() {},
  seconds() {},
};

// What the process itself takes, as metrics read when they are asked for. Not for: what the parts of a node do (theirs).
import type { Metrics } from '../base/metrics.ts';

const MICROSECONDS = 1e6;

/** Memory as the kernel counts it, and processor time of all threads. */
export function observeProcess(metrics: Metrics): void {
  metrics.observeGauge(
    'floe_process_resident_bytes',
    'Memory of the process, as the kernel counts it',
    () => process.memoryUsage.rss(),
  );
  metrics.observeGauge(
    'floe_process_cpu_seconds',
    'Processor time of the process since its start',
    () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / MICROSECONDS;
    },
  );
}

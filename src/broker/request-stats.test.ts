import { expect, it } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { PrometheusMetrics } from '../base/metrics.ts';
import { RequestStats } from './request-stats.ts';

it('tells requests, bytes, stages and errors once a second, and nothing while idle', async () => {
  const clock = new ManualClock();
  const metrics = new PrometheusMetrics();
  const stats = new RequestStats(metrics, clock);
  expect(clock.nextTimer()).toBeUndefined();
  stats.request('Produce', 100);
  stats.request('Produce', 50);
  stats.reply('Produce', 30, { queueMs: 1_000, handleMs: 500, sendMs: 0 });
  stats.error('Produce', 10);
  await clock.advance(1_000);
  const text = await metrics.render();
  expect(text).toContain('floe_broker_requests_total{api="Produce"} 2');
  expect(text).toContain('floe_broker_received_bytes_total{api="Produce"} 150');
  expect(text).toContain('floe_broker_sent_bytes_total{api="Produce"} 30');
  expect(text).toContain('floe_broker_stage_seconds_total{api="Produce",stage="queue"} 1');
  expect(text).toContain('floe_broker_errors_total{api="Produce",error="MESSAGE_TOO_LARGE"} 1');
  expect(text).toContain('floe_broker_request_seconds_count{api="Produce"} 1');
  expect(clock.nextTimer()).toBeUndefined();
});

import { fastify } from 'fastify';
import { afterEach, expect, test } from 'vitest';
import type { PrometheusMetrics } from '../base/metrics.ts';
import type { TableTopics } from '../table-topic/index.ts';
import { operatorApp } from './operator.ts';

const app = operatorApp({
  metrics: {} as PrometheusMetrics,
  tables: { elsewhere: async () => undefined } as unknown as TableTopics,
  attach: () => ({ type: 'embedded', uri: 'http://', warehouse: '', s3Endpoint: '' }),
  sql: async () => fastify(),
  cluster: {
    node: () => ({ nodeId: 1, commit: 7 }),
    status: async () => expect.unreachable('nobody asks for the cluster'),
  },
});
afterEach(() => app.close());

test('what no handler sees is refused by thing, value and remedy', async () => {
  const form = await app.inject({
    method: 'POST',
    url: '/v1/tables/t/resume',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: 'policy=rewind',
  });
  expect(form.statusCode).toBe(415);
  expect(form.json()).toEqual({
    error: {
      code: 'invalid',
      message:
        'Content-Type "application/x-www-form-urlencoded" is not read here: send application/json, or no body',
    },
  });
  const word = await app.inject({
    method: 'POST',
    url: '/v1/tables/t/resume',
    payload: ['rewind'],
  });
  expect(word.statusCode).toBe(400);
  expect(word.json().error.message).toBe(
    'the body ["rewind"] is not {"policy": "rewind" | "keep" | "restart"}: send that, or no body',
  );
  const lost = await app.inject({ method: 'GET', url: '/v1/table?x=1' });
  expect(lost.statusCode).toBe(404);
  expect(lost.json().error.message).toMatch(/^no route GET \/v1\/table: there are GET \/healthz/);
});

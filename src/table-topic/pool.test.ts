// The pool beside threads that die, hang and answer: one job's end never takes another's along.
import { afterEach, expect, test } from 'vitest';
import { silentLogger } from '../base/log.ts';
import type { TableJob } from './job.ts';
import { WorkerPool } from './pool.ts';

/** Answers each job with its id, dies of some, never answers others. */
const SCRIPT = `
  import { parentPort } from 'node:worker_threads';
  parentPort.on('message', ({ jobId }) => {
    if (jobId === 'throws') throw new Error('a bug');
    if (jobId === 'exits') process.exit(3);
    if (jobId !== 'hangs') parentPort.postMessage({ kind: 'staged', jobId });
  });`;

let pool: WorkerPool;
afterEach(() => pool.stop());

function open(threads: number, script = SCRIPT): void {
  pool = new WorkerPool({
    threads,
    worker: { storeUri: '', storeSettings: {} },
    logger: silentLogger,
    script: new URL(`data:text/javascript,${encodeURIComponent(script)}`),
  });
}

const run = (jobId: string, topic = jobId) =>
  pool.run({ jobId, topic, slices: [] } as unknown as TableJob);

test.each(['throws', 'exits'])(
  'a thread that dies (%s) fails its own job, and is replaced',
  async (end) => {
    open(1);
    const results = await Promise.all([run('a'), run(end), run('b'), run('c')]);
    expect(results.map(({ kind }) => kind)).toEqual(['staged', 'failed', 'staged', 'staged']);
    expect(results[1]).toMatchObject({
      error: {
        code: 'unavailable',
        message: expect.stringMatching(/^a table worker died: .*(a bug|exit code 3)/),
      },
    });
  },
);

test('threads that can’t even start fail their jobs one by one, and nothing turns in circles', async () => {
  open(2, 'throw new Error("no start");');
  const results = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((job) => run(job)));
  expect(results.map(({ kind }) => kind)).toEqual(Array(5).fill('failed'));
});

test('T9: tables take turns, however long the queue of one', async () => {
  open(1);
  const order: string[] = [];
  const note = async (jobId: string, topic: string) => {
    await run(jobId, topic);
    order.push(jobId);
  };
  await Promise.all([
    ...['a1', 'a2', 'a3', 'a4'].map((job) => note(job, 'a')),
    ...['b1', 'b2'].map((job) => note(job, 'b')),
  ]);
  expect(order).toHaveLength(6);
  expect(order.indexOf('b2')).toBeLessThan(order.indexOf('a4'));
});

test('stopping ends every job, the hanging one too', async () => {
  open(1);
  const jobs = [run('hangs'), run('a')];
  await pool.stop();
  for (const result of await Promise.all(jobs)) {
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'cancelled' } });
  }
  expect(await run('late')).toMatchObject({ kind: 'failed', error: { code: 'cancelled' } });
});

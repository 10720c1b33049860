// Metadata across a thread border: which calls tell that a version has risen.
import { MessageChannel } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { FloeError } from '../base/error.ts';
import type { Metadata } from './metadata.ts';
import { connectMetadata, serveMetadata } from './remote.ts';

test('a change that others keep copies of is told of once it has succeeded, before its caller goes on', async () => {
  const { port1, port2 } = new MessageChannel();
  const served = {
    topics: {
      list: async () => [],
      delete: async (topicId: string) => {
        if (topicId === 'none') throw new FloeError('not-found', 'there is no such topic');
      },
    },
    security: { alterAcls: async () => {} },
  };
  serveMetadata(served as unknown as Metadata, port1);
  const told: string[] = [];
  const metadata = connectMetadata(port2, () => told.push('raised'));
  await metadata.topics.list();
  await expect(metadata.topics.delete('none')).rejects.toThrow('no such topic');
  expect(told).toEqual([]);
  await metadata.topics.delete('one').then(() => told.push('answered'));
  await metadata.security.alterAcls([], []);
  expect(told).toEqual(['raised', 'answered', 'raised']);
  port2.close();
});

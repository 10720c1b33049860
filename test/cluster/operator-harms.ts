// What an operator may stop for a while: writes to a topic, all traffic of one of its partitions. Clients wait and go on.
// Undone before it resolves, however long that takes.
import { setTimeout as sleep } from 'node:timers/promises';
import { FloeError } from '../../src/base/error.ts';
import type { Prng } from '../../src/base/prng.ts';
import { withWire } from '../../src/cli/wire-client.ts';
import { ErrorCode } from '../../src/protocol/errors.ts';
import { incrementalAlterConfigsApi } from '../../src/protocol/messages/44-incremental-alter-configs.ts';
import type { TestCluster } from './cluster.ts';
import { type Harm, someTime } from './harm.ts';

/** Kafka's numbers of a resource's kind and of what is done to a config. */
const TOPIC = 2;
const [SET, DELETE] = [0, 1];
const RETRY_MS = 500;

export interface StoppedTopic {
  readonly topic: string;
  readonly partitions: number;
}

export function operatorHarms(
  cluster: TestCluster,
  { topic, partitions }: StoppedTopic,
): Record<string, Harm> {
  /** It may be down: then another is asked. */
  const anyOne = (prng: Prng) => cluster.members[prng.int(cluster.members.length)]!.kafka;
  const change = (server: string, name: string, value: string | null) =>
    withWire(server, async (wire) => {
      const configOperation = value === null ? DELETE : SET;
      const configs = [{ name, configOperation, value }];
      const { responses } = await wire.ask(incrementalAlterConfigsApi, {
        resources: [{ resourceType: TOPIC, resourceName: topic, configs }],
        validateOnly: false,
      });
      return responses[0]!.errorCode;
    });
  const forAWhile = async (prng: Prng, name: string, value: string) => {
    // Whoever can't be asked, or is of a revision that doesn't know the config, stops nothing.
    const code = await change(anyOne(prng), name, value).catch(() => ErrorCode.NONE);
    if (code === ErrorCode.INVALID_CONFIG) return;
    await someTime(prng);
    await untilDone(async () => (await change(anyOne(prng), name, null)) === 0);
  };
  return {
    'read-only': (prng) => forAWhile(prng, 'floe.read.only', 'true'),
    quarantine: (prng) =>
      forAWhile(prng, 'floe.quarantined.partitions', String(prng.int(partitions))),
  };
}

/** What answered an error, or didn't answer, is asked again. */
async function untilDone(act: () => Promise<boolean>): Promise<void> {
  for (;;) {
    const done = await act().catch((caught: unknown) => {
      if (caught instanceof FloeError) return false;
      throw caught;
    });
    if (done) return;
    await sleep(RETRY_MS);
  }
}

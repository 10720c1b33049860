// Contract of every store for names of clients: Kafka lets groups, transactional ids, users, principals and the like hold
// any character, U+0000 included. They come back whole, stay apart, and are removed by their name. Not for: names that
// never get here, as a higher layer refuses them (topics, subjects, tables). Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ACL_OPERATION, ACL_PATTERN, ACL_PERMISSION, ACL_RESOURCE } from '../../protocol/acls.ts';
import type { StoredGroup } from '../groups.ts';
import type { ScramCredential } from '../security.ts';
import { createTopic, type OpenStore, type StoreUnderTest } from './store.ts';

/** One is what is left of another that is cut at U+0000, or escaped and not read back. */
const NAMES = ['n', 'n\0', 'n\0m', 'n\u001b0m', 'n\u001b'] as const;
const HOLDER = { nodeId: 1, session: 's' };

const groupOf = (groupId: string): StoredGroup => ({
  kind: 'classic',
  groupId,
  protocolType: groupId,
  generation: 1,
  protocol: groupId,
  leaderId: groupId,
  members: [],
  stateSinceMs: 1,
});

const credentialOf = (user: string): ScramCredential => ({
  user,
  mechanism: 'SCRAM-SHA-256',
  iterations: 4096,
  salt: Uint8Array.of(1),
  storedKey: Uint8Array.of(2),
  serverKey: Uint8Array.of(3),
});

const aclOf = (name: string) => ({
  resourceType: ACL_RESOURCE.group,
  resourceName: name,
  patternType: ACL_PATTERN.literal,
  principal: `User:${name}`,
  host: name,
  operation: ACL_OPERATION.read,
  permission: ACL_PERMISSION.allow,
});

/** Runs the suite on stores that `open` makes. */
export function namesContract(name: string, open: OpenStore): void {
  describe(`names contract: ${name}`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    test('names with U+0000 come back whole, stay apart, and go by their name', async () => {
      const { metadata } = store;
      const [partitionId] = await createTopic(metadata, 1);
      const { groups, leases, transactions, security, quotas, resourceConfigs, topics } = metadata;
      const tokens = await leases.acquire({
        names: ['groups/0'],
        holder: HOLDER,
        durationMs: 60_000,
      });
      const offsetOf = (metadata: string) => ({
        partitionId: partitionId!,
        offset: 1,
        leaderEpoch: 0,
        metadata,
        commitMs: 1,
        expireMs: -1,
      });
      await groups.write(
        NAMES.flatMap((each) => [
          { kind: 'group' as const, group: groupOf(each) },
          { kind: 'offsets' as const, groupId: each, offsets: [offsetOf(each)] },
        ]),
        tokens,
      );
      await transactions.apply(
        NAMES.map((transactionalId) => ({
          transactionalId,
          event: { type: 'init', timeoutMs: 60_000 },
        })),
        1,
      );
      await security.alterCredentials(NAMES.map(credentialOf), []);
      await security.alterAcls(NAMES.map(aclOf), []);
      await quotas.alter(
        NAMES.map((user) => ({ entity: { user }, values: { producer_byte_rate: 1 } })),
      );
      for (const each of NAMES) await resourceConfigs.alter('group', each, { x: each });
      await topics.alterBrokerConfig('', { x: NAMES[2] });

      await store.reopen();
      const found = store.metadata;
      const sorted = (names: readonly string[]) => names.toSorted();
      const expected = sorted(NAMES);
      const loaded = await found.groups.load();
      expect(sorted(loaded.map(({ group }) => group.groupId))).toEqual(expected);
      for (const { group, offsets } of loaded) {
        expect(group).toEqual(groupOf(group.groupId));
        expect(offsets).toEqual([offsetOf(group.groupId)]);
      }
      const states = await found.transactions.load();
      expect(sorted(states.map((state) => state.transactionalId))).toEqual(expected);
      const { credentials, acls } = await found.security.load();
      expect(sorted(credentials.map(({ user }) => user))).toEqual(expected);
      expect(sorted(acls.map(({ resourceName }) => resourceName))).toEqual(expected);
      for (const acl of acls) expect(acl).toEqual(aclOf(acl.resourceName));
      const limited = (await found.quotas.list()).map(({ entity }) => entity['user']!);
      expect(sorted(limited)).toEqual(expected);
      for (const row of await found.resourceConfigs.list())
        expect(row.config).toEqual({ x: row.name });
      expect(await found.topics.brokerConfig('')).toEqual({ x: NAMES[2] });

      const [, , gone] = NAMES;
      const left = expected.filter((each) => each !== gone);
      await found.groups.write([{ kind: 'group-gone', groupId: gone, withStaged: true }], tokens);
      await found.security.alterCredentials([], [credentialOf(gone)]);
      await found.security.alterAcls([], [aclOf(gone)]);
      await found.resourceConfigs.alter('group', gone, { x: null });
      const groupsLeft = (await found.groups.load()).map(({ group }) => group.groupId);
      expect(sorted(groupsLeft)).toEqual(left);
      const secured = await found.security.load();
      expect(sorted(secured.credentials.map(({ user }) => user))).toEqual(left);
      expect(sorted(secured.acls.map(({ host }) => host))).toEqual(left);
      const configs = (await found.resourceConfigs.list()).map((row) => row.name);
      expect(sorted(configs)).toEqual(left);
    });
  });
}

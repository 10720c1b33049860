// Contract of `SecurityMetadata`, for every store: credentials and ACLs are set, replaced, removed, and outlast the
// process. Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ACL_OPERATION, ACL_PATTERN, ACL_PERMISSION, ACL_RESOURCE } from '../../protocol/acls.ts';
import type { AclBinding, ScramCredential } from '../security.ts';
import type { OpenStore, StoreUnderTest } from './store.ts';

function credential(user: string, iterations = 4096): ScramCredential {
  return {
    user,
    mechanism: 'SCRAM-SHA-256',
    iterations,
    salt: Uint8Array.of(1, 2),
    storedKey: Uint8Array.of(3),
    serverKey: Uint8Array.of(4, 5, 6),
  };
}

function acl(resourceName: string, operation: number = ACL_OPERATION.read): AclBinding {
  return {
    resourceType: ACL_RESOURCE.topic,
    resourceName,
    patternType: ACL_PATTERN.literal,
    principal: 'User:alice',
    host: '*',
    operation,
    permission: ACL_PERMISSION.allow,
  };
}

/** Runs the suite on stores that `open` makes. */
export function securityContract(name: string, open: OpenStore): void {
  describe(`security contract: ${name}`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    test('keeps credentials over a restart, one per user and mechanism', async () => {
      await store.metadata.security.alterCredentials([credential('alice'), credential('bob')], []);
      const other = { ...credential('alice'), mechanism: 'SCRAM-SHA-512' } as const;
      await store.metadata.security.alterCredentials(
        [credential('alice', 8192), other],
        [credential('bob')],
      );
      await store.reopen();
      const { credentials } = await store.metadata.security.load();
      expect(credentials).toEqual([credential('alice', 8192), other]);
    });

    test('replaces a credential that is removed and set at once', async () => {
      await store.metadata.security.alterCredentials([credential('alice')], []);
      await store.metadata.security.alterCredentials(
        [credential('alice', 5000)],
        [credential('alice')],
      );
      expect((await store.metadata.security.load()).credentials).toEqual([
        credential('alice', 5000),
      ]);
    });

    test('keeps ACLs, each once', async () => {
      await store.metadata.security.alterAcls([acl('a'), acl('b'), acl('a')], []);
      await store.metadata.security.alterAcls(
        [acl('a', ACL_OPERATION.write)],
        [acl('b'), acl('never there')],
      );
      await store.reopen();
      const { acls } = await store.metadata.security.load();
      expect(acls).toEqual([acl('a'), acl('a', ACL_OPERATION.write)]);
    });
  });
}

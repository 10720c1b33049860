// Credentials and ACLs are set, replaced, removed, and outlast the process.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ACL_OPERATION, ACL_PATTERN, ACL_PERMISSION, ACL_RESOURCE } from '../../protocol/acls.ts';
import type { AclBinding, ScramCredential } from '../security.ts';
import { openSqliteMetadata, type SqliteMetadata } from './index.ts';

let folder: string;
let metadata: SqliteMetadata;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'floe-security-'));
  metadata = openSqliteMetadata(join(folder, 'metadata.sqlite'));
});

afterEach(() => {
  metadata.close();
  rmSync(folder, { recursive: true });
});

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

it('keeps credentials over a restart, one per user and mechanism', async () => {
  await metadata.security.alterCredentials([credential('alice'), credential('bob')], []);
  const other = { ...credential('alice'), mechanism: 'SCRAM-SHA-512' } as const;
  await metadata.security.alterCredentials([credential('alice', 8192), other], [credential('bob')]);
  metadata.close();
  metadata = openSqliteMetadata(join(folder, 'metadata.sqlite'));
  const { credentials } = await metadata.security.load();
  expect(credentials).toEqual([credential('alice', 8192), other]);
});

it('replaces a credential that is removed and set at once', async () => {
  await metadata.security.alterCredentials([credential('alice')], []);
  await metadata.security.alterCredentials([credential('alice', 5000)], [credential('alice')]);
  expect((await metadata.security.load()).credentials).toEqual([credential('alice', 5000)]);
});

it('keeps ACLs, each once', async () => {
  await metadata.security.alterAcls([acl('a'), acl('b'), acl('a')], []);
  await metadata.security.alterAcls(
    [acl('a', ACL_OPERATION.write)],
    [acl('b'), acl('never there')],
  );
  metadata.close();
  metadata = openSqliteMetadata(join(folder, 'metadata.sqlite'));
  const { acls } = await metadata.security.load();
  expect(acls).toEqual([acl('a'), acl('a', ACL_OPERATION.write)]);
});

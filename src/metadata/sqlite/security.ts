// Credentials and ACLs on SQLite. See metadata/security.ts for the contract.
import type {
  AclBinding,
  CredentialName,
  ScramCredential,
  ScramMechanism,
  SecurityMetadata,
} from '../security.ts';
import type { Database, Migration } from './database.ts';
import { uncounted, type VersionCounter } from './versions.ts';

export const securityMigrations: readonly Migration[] = [
  {
    name: 'security-1',
    sql: `
      CREATE TABLE scram_credentials (
        user TEXT NOT NULL, mechanism TEXT NOT NULL, iterations INTEGER NOT NULL,
        salt BLOB NOT NULL, stored_key BLOB NOT NULL, server_key BLOB NOT NULL,
        PRIMARY KEY (user, mechanism)) STRICT, WITHOUT ROWID;
      CREATE TABLE acls (
        resource_type INTEGER NOT NULL, resource_name TEXT NOT NULL, pattern_type INTEGER NOT NULL,
        principal TEXT NOT NULL, host TEXT NOT NULL, operation INTEGER NOT NULL,
        permission INTEGER NOT NULL,
        PRIMARY KEY (resource_type, resource_name, pattern_type, principal, host, operation,
          permission)) STRICT, WITHOUT ROWID;`,
  },
];

interface CredentialRecord {
  user: string;
  mechanism: ScramMechanism;
  iterations: number;
  salt: Uint8Array;
  stored_key: Uint8Array;
  server_key: Uint8Array;
}

interface AclRecord {
  resource_type: number;
  resource_name: string;
  pattern_type: number;
  principal: string;
  host: string;
  operation: number;
  permission: number;
}

export class SqliteSecurity implements SecurityMetadata {
  readonly #db: Database;
  readonly #versions: VersionCounter;

  constructor(db: Database, versions: VersionCounter = uncounted) {
    this.#db = db;
    this.#versions = versions;
  }

  async load() {
    return this.#db.transaction(() => {
      const credentials = this.#db
        .prepare('SELECT * FROM scram_credentials')
        .all() as unknown as CredentialRecord[];
      const acls = this.#db.prepare('SELECT * FROM acls').all() as unknown as AclRecord[];
      return { credentials: credentials.map(toCredential), acls: acls.map(toAcl) };
    });
  }

  async alterCredentials(
    set: readonly ScramCredential[],
    removed: readonly CredentialName[],
  ): Promise<void> {
    const insert = this.#db.prepare(
      'INSERT OR REPLACE INTO scram_credentials VALUES (?, ?, ?, ?, ?, ?)',
    );
    const remove = this.#db.prepare(
      'DELETE FROM scram_credentials WHERE user = ? AND mechanism = ?',
    );
    this.#db.transaction(() => {
      this.#versions.raise('security');
      for (const { user, mechanism } of removed) remove.run(user, mechanism);
      for (const { user, mechanism, iterations, salt, storedKey, serverKey } of set) {
        insert.run(user, mechanism, iterations, salt, storedKey, serverKey);
      }
    });
  }

  async alterAcls(added: readonly AclBinding[], removed: readonly AclBinding[]): Promise<void> {
    const insert = this.#db.prepare('INSERT OR IGNORE INTO acls VALUES (?, ?, ?, ?, ?, ?, ?)');
    const remove = this.#db.prepare(`
      DELETE FROM acls WHERE resource_type = ? AND resource_name = ? AND pattern_type = ?
        AND principal = ? AND host = ? AND operation = ? AND permission = ?`);
    this.#db.transaction(() => {
      this.#versions.raise('security');
      for (const acl of removed) remove.run(...fields(acl));
      for (const acl of added) insert.run(...fields(acl));
    });
  }
}

function fields(acl: AclBinding) {
  const { resourceType, resourceName, patternType } = acl;
  const { principal, host, operation, permission } = acl;
  return [resourceType, resourceName, patternType, principal, host, operation, permission] as const;
}

function toCredential(row: CredentialRecord): ScramCredential {
  const { user, mechanism, iterations, salt, stored_key: storedKey, server_key: serverKey } = row;
  return { user, mechanism, iterations, salt, storedKey, serverKey };
}

function toAcl(row: AclRecord): AclBinding {
  return {
    resourceType: row.resource_type,
    resourceName: row.resource_name,
    patternType: row.pattern_type,
    principal: row.principal,
    host: row.host,
    operation: row.operation,
    permission: row.permission,
  };
}

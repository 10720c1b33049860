// Credentials and ACLs on PostgreSQL. See metadata/security.ts for the contract.
import type {
  AclBinding,
  CredentialName,
  ScramCredential,
  ScramMechanism,
  SecurityMetadata,
} from '../security.ts';
import { clientText, storedText } from '../text.ts';
import type { Database, SqlValue } from './database.ts';
import type { Migration } from './migrations.ts';
import { raiseVersions } from './versions.ts';

export const securityMigrations: readonly Migration[] = [
  {
    name: 'security-1',
    sql: `
      CREATE TABLE scram_credentials (
        username text COLLATE "C", mechanism text COLLATE "C", iterations int4 NOT NULL,
        salt bytea NOT NULL, stored_key bytea NOT NULL, server_key bytea NOT NULL,
        PRIMARY KEY (username, mechanism));
      CREATE TABLE acls (
        resource_type int4, resource_name text COLLATE "C", pattern_type int4, principal text COLLATE "C",
        host text COLLATE "C", operation int4, permission int4,
        PRIMARY KEY (resource_type, resource_name, pattern_type, principal, host, operation, permission));`,
  },
];

interface CredentialRow {
  username: string;
  mechanism: ScramMechanism;
  iterations: number;
  salt: Uint8Array;
  stored_key: Uint8Array;
  server_key: Uint8Array;
}

interface AclRow {
  resource_type: number;
  resource_name: string;
  pattern_type: number;
  principal: string;
  host: string;
  operation: number;
  permission: number;
}

const ACL_COLUMNS =
  'unnest($1::int4[], $2::text[], $3::int4[], $4::text[], $5::text[], $6::int4[], $7::int4[])';

export class PostgresSecurity implements SecurityMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async load() {
    return this.#db.snapshot('read', async (tx) => {
      const [credentials, acls] = await Promise.all([
        tx.rows<CredentialRow>('SELECT * FROM scram_credentials ORDER BY username, mechanism'),
        tx.rows<AclRow>(
          'SELECT * FROM acls ORDER BY resource_type, resource_name, principal, operation',
        ),
      ]);
      return { credentials: credentials.map(toCredential), acls: acls.map(toAcl) };
    });
  }

  async alterCredentials(
    set: readonly ScramCredential[],
    removed: readonly CredentialName[],
  ): Promise<void> {
    const last = [...new Map(set.map((one) => [`${one.mechanism} ${one.user}`, one])).values()];
    await this.#db.transaction('write', async (tx) => {
      await raiseVersions(tx, 'security');
      await tx.run(
        `DELETE FROM scram_credentials c USING unnest($1::text[], $2::text[]) AS gone(username, mechanism)
         WHERE c.username = gone.username AND c.mechanism = gone.mechanism`,
        [removed.map(({ user }) => storedText(user)), removed.map(({ mechanism }) => mechanism)],
      );
      await tx.run(
        `INSERT INTO scram_credentials
         SELECT * FROM unnest($1::text[], $2::text[], $3::int4[], $4::bytea[], $5::bytea[], $6::bytea[])
         ON CONFLICT (username, mechanism) DO UPDATE SET iterations = excluded.iterations,
           salt = excluded.salt, stored_key = excluded.stored_key, server_key = excluded.server_key`,
        [
          last.map(({ user }) => storedText(user)),
          last.map(({ mechanism }) => mechanism),
          last.map(({ iterations }) => iterations),
          last.map(({ salt }) => salt),
          last.map(({ storedKey }) => storedKey),
          last.map(({ serverKey }) => serverKey),
        ],
      );
    });
  }

  async alterAcls(added: readonly AclBinding[], removed: readonly AclBinding[]): Promise<void> {
    await this.#db.transaction('write', async (tx) => {
      await raiseVersions(tx, 'security');
      await tx.run(
        `DELETE FROM acls WHERE (resource_type, resource_name, pattern_type, principal, host, operation,
           permission) IN (SELECT * FROM ${ACL_COLUMNS})`,
        columnsOf(removed),
      );
      await tx.run(
        `INSERT INTO acls SELECT * FROM ${ACL_COLUMNS} ON CONFLICT DO NOTHING`,
        columnsOf(added),
      );
    });
  }
}

function columnsOf(acls: readonly AclBinding[]): SqlValue[] {
  return [
    acls.map((acl) => acl.resourceType),
    acls.map((acl) => storedText(acl.resourceName)),
    acls.map((acl) => acl.patternType),
    acls.map((acl) => storedText(acl.principal)),
    acls.map((acl) => storedText(acl.host)),
    acls.map((acl) => acl.operation),
    acls.map((acl) => acl.permission),
  ];
}

function toCredential(row: CredentialRow): ScramCredential {
  const { mechanism, iterations } = row;
  return {
    user: clientText(row.username),
    mechanism,
    iterations,
    salt: new Uint8Array(row.salt),
    storedKey: new Uint8Array(row.stored_key),
    serverKey: new Uint8Array(row.server_key),
  };
}

function toAcl(row: AclRow): AclBinding {
  return {
    resourceType: row.resource_type,
    resourceName: clientText(row.resource_name),
    patternType: row.pattern_type,
    principal: clientText(row.principal),
    host: clientText(row.host),
    operation: row.operation,
    permission: row.permission,
  };
}

// Security at rest: salted SCRAM credentials of users, and access control lists. Passwords are never here.
// The broker keeps all of it in memory (broker/auth/) and changes it through this.

export type ScramMechanism = 'SCRAM-SHA-256' | 'SCRAM-SHA-512';

/** What a server keeps of a password (RFC 5802): enough to check a proof, not enough to make one. */
export interface ScramCredential {
  readonly user: string;
  readonly mechanism: ScramMechanism;
  readonly iterations: number;
  readonly salt: Uint8Array;
  readonly storedKey: Uint8Array;
  readonly serverKey: Uint8Array;
}

/** One credential of a user, by name. */
export interface CredentialName {
  readonly user: string;
  readonly mechanism: ScramMechanism;
}

/** One rule, in Kafka's numbers (protocol/acls.ts). Two rules with all fields equal are one rule. */
export interface AclBinding {
  readonly resourceType: number;
  readonly resourceName: string;
  readonly patternType: number;
  /** `User:alice` or `User:*`. */
  readonly principal: string;
  /** An address, or `*`. */
  readonly host: string;
  readonly operation: number;
  readonly permission: number;
}

export interface SecurityMetadata {
  /** Everything there is, for the broker's start. */
  load(): Promise<{
    readonly credentials: readonly ScramCredential[];
    readonly acls: readonly AclBinding[];
  }>;
  /** Sets (replacing what is under the same name) and removes, in one transaction. */
  alterCredentials(
    set: readonly ScramCredential[],
    removed: readonly CredentialName[],
  ): Promise<void>;
  /** Adds and removes rules in one transaction; a rule that is there, or isn't, is no error. */
  alterAcls(added: readonly AclBinding[], removed: readonly AclBinding[]): Promise<void>;
}

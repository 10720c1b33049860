// Who may do what: the question that every handler asks before it touches a resource.
// `ALLOW_ALL` is the broker without an authorizer; acl-authorizer.ts is the one with ACLs.
// Not for: who somebody is (session.ts).
import type { AclBinding } from '../../metadata/security.ts';
import { ACL_OPERATION, type ACL_RESOURCE } from '../../protocol/acls.ts';
import type { AclFilter } from './acl-filter.ts';

/** What may be asked for; `unknown`, `any` and `all` are words of rules and filters only. */
export type Operation = Exclude<keyof typeof ACL_OPERATION, 'unknown' | 'any' | 'all'>;

export type ResourceType = Exclude<keyof typeof ACL_RESOURCE, 'unknown' | 'any'>;

/** `User:alice`: a type, which is always User here, and a name. */
export interface Principal {
  readonly type: 'User';
  readonly name: string;
}

/** Who comes by a listener that asks nobody for a name. */
export const ANONYMOUS: Principal = { type: 'User', name: 'ANONYMOUS' };

export const formatPrincipal = ({ type, name }: Principal): string => `${type}:${name}`;

/** Whose request it is: a principal at an address. */
export interface Requester {
  readonly principal: Principal;
  /** Address without port, as ACLs name hosts. */
  readonly host: string;
}

export interface Authorizer {
  /** False: everybody may do everything. */
  readonly enabled: boolean;
  /** Raised by every change that may change an answer, so that answers can be kept. */
  readonly version: number;
  allows(who: Requester, operation: Operation, type: ResourceType, name: string): boolean;
  /** True when `who` may do `operation` on at least one resource of `type`, existing or not. */
  allowsAny(who: Requester, operation: Operation, type: ResourceType): boolean;
  /** The rules behind the answers; undefined where there are none to show or change. */
  readonly acls: AclRules | undefined;
}

/** Rules as the ACL APIs show and change them. */
export interface AclRules {
  /** The rules that a filter means. */
  list(filter: AclFilter): readonly AclBinding[];
  /** Adds checked rules; those that are there already stay. @throws FloeError `exhausted` past the limit. */
  add(acls: readonly AclBinding[]): Promise<void>;
  remove(acls: readonly AclBinding[]): Promise<void>;
}

/** No authorizer: every client may do everything, as in an unsecured Kafka. */
export const ALLOW_ALL: Authorizer = {
  enabled: false,
  version: 0,
  allows: () => true,
  allowsAny: () => true,
  acls: undefined,
};

/** The operations that exist for each type of resource; those that Kafka lists, in its order. */
export const OPERATIONS_OF: Readonly<Record<ResourceType, readonly Operation[]>> = {
  topic: [
    'read',
    'write',
    'create',
    'delete',
    'alter',
    'describe',
    'describeConfigs',
    'alterConfigs',
  ],
  group: ['read', 'delete', 'describe', 'describeConfigs', 'alterConfigs'],
  cluster: [
    'create',
    'alter',
    'describe',
    'clusterAction',
    'describeConfigs',
    'alterConfigs',
    'idempotentWrite',
  ],
  transactionalId: ['write', 'describe', 'twoPhaseCommit'],
  delegationToken: ['describe'],
  user: ['createTokens', 'describeTokens'],
};

/** Sent in place of a bit set when the client didn't ask for one (KIP-430). */
export const NOT_ASKED = -(2 ** 31);

/** Operations as the bit set that Metadata and describe APIs carry (KIP-430): one bit per ACL operation. */
export function operationBits(operations: readonly Operation[]): number {
  return operations.reduce((set, operation) => set | (1 << ACL_OPERATION[operation]), 0);
}

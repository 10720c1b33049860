// The authorizer with access control lists, deciding as Kafka's StandardAuthorizer does:
// - a super user may do everything
// - a rule about the resource that denies wins over all that allow
// - allowing read, write, delete or alter allows describe; allowing alterConfigs allows describeConfigs
// - a resource that no rule is about is closed, or open to all by allow.everyone.if.no.acl.found
// Rules lie in memory, indexed, and are changed in the metadata store first.
import { FloeError } from '../../base/error.ts';
import { Mutex } from '../../base/queue.ts';
import type { AclBinding, SecurityMetadata } from '../../metadata/security.ts';
import {
  ACL_OPERATION,
  ACL_PATTERN,
  ACL_PERMISSION,
  ACL_RESOURCE,
  WILDCARD,
} from '../../protocol/acls.ts';
import { type AclFilter, matches } from './acl-filter.ts';
import { AclIndex } from './acl-index.ts';
import {
  type AclRules,
  type Authorizer,
  formatPrincipal,
  type Operation,
  type Requester,
  type ResourceType,
} from './authorizer.ts';

export interface AclAuthorizerOptions {
  readonly store: SecurityMetadata;
  /** The rules in the store. */
  readonly acls: readonly AclBinding[];
  /** `User:name` each. */
  readonly superUsers: readonly string[];
  /** allow.everyone.if.no.acl.found */
  readonly openByDefault: boolean;
  /** Most rules kept. */
  readonly maxAcls: number;
  /** Changes take turns with whoever reads the store again and calls `replace`. */
  readonly turns?: Mutex;
}

/** No resource is called so: only rules about all names concern it. */
const NAMELESS = '\0';

const ANYBODY = `User:${WILDCARD}`;

const IMPLIES_DESCRIBE: ReadonlySet<number> = new Set([
  ACL_OPERATION.read,
  ACL_OPERATION.write,
  ACL_OPERATION.delete,
  ACL_OPERATION.alter,
]);

export class AclAuthorizer implements Authorizer, AclRules {
  readonly enabled = true;
  readonly acls = this;
  version = 0;
  readonly #options: AclAuthorizerOptions;
  readonly #superUsers: ReadonlySet<string>;
  readonly #index = new AclIndex();
  readonly #turns: Mutex;

  constructor(options: AclAuthorizerOptions) {
    this.#options = options;
    this.#superUsers = new Set(options.superUsers);
    this.#turns = options.turns ?? new Mutex();
    for (const acl of options.acls) this.#index.add(acl);
  }

  get size(): number {
    return this.#index.size;
  }

  allows(who: Requester, operation: Operation, type: ResourceType, name: string): boolean {
    if (this.#isSuper(who)) return true;
    let found = false;
    let allowed = false;
    for (const acl of this.#index.about(ACL_RESOURCE[type], name)) {
      found = true;
      if (!isAbout(acl, who) || !covers(acl, ACL_OPERATION[operation])) continue;
      if (acl.permission === ACL_PERMISSION.deny) return false;
      allowed = true;
    }
    return found ? allowed : this.#options.openByDefault;
  }

  allowsAny(who: Requester, operation: Operation, type: ResourceType): boolean {
    if (this.allows(who, operation, type, NAMELESS)) return true;
    const wanted = ACL_OPERATION[operation];
    const denied: AclBinding[] = [];
    const allowed: AclBinding[] = [];
    for (const acl of this.#index.ofType(ACL_RESOURCE[type])) {
      if (!isAbout(acl, who)) continue;
      if (acl.operation !== ACL_OPERATION.all && acl.operation !== wanted) continue;
      (acl.permission === ACL_PERMISSION.deny ? denied : allowed).push(acl);
    }
    if (denied.some(isWildcard)) return false;
    return allowed.some((acl) => isWildcard(acl) || !denied.some((deny) => dominates(deny, acl)));
  }

  list(filter: AclFilter): AclBinding[] {
    return [...this.#index.all()].filter((acl) => matches(filter, acl));
  }

  async add(acls: readonly AclBinding[]): Promise<void> {
    const { maxAcls, store } = this.#options;
    const added = acls.filter((acl) => !this.#index.has(acl)).length;
    if (this.#index.size + added > maxAcls) {
      throw new FloeError(
        'exhausted',
        `there may be ${maxAcls} ACLs at most (authorizer.max.acls)`,
      );
    }
    await this.#turns.run(async () => {
      await store.alterAcls(acls, []);
      for (const acl of acls) this.#index.add(acl);
      this.version += 1;
    });
  }

  async remove(acls: readonly AclBinding[]): Promise<void> {
    await this.#turns.run(async () => {
      await this.#options.store.alterAcls([], acls);
      for (const acl of acls) this.#index.remove(acl);
      this.version += 1;
    });
  }

  /** Takes over the rules of the store, which were read in turn. */
  replace(acls: readonly AclBinding[]): void {
    if (this.#index.replace(acls)) this.version += 1;
  }

  #isSuper({ principal }: Requester): boolean {
    return this.#superUsers.has(formatPrincipal(principal));
  }
}

function isAbout({ principal, host }: AclBinding, who: Requester): boolean {
  return (
    (principal === ANYBODY || principal === formatPrincipal(who.principal)) &&
    (host === WILDCARD || host === who.host)
  );
}

function covers({ operation, permission }: AclBinding, wanted: number): boolean {
  if (operation === wanted || operation === ACL_OPERATION.all) return true;
  if (permission === ACL_PERMISSION.deny) return false;
  if (wanted === ACL_OPERATION.describe) return IMPLIES_DESCRIBE.has(operation);
  return wanted === ACL_OPERATION.describeConfigs && operation === ACL_OPERATION.alterConfigs;
}

const isWildcard = ({ patternType, resourceName }: AclBinding) =>
  patternType === ACL_PATTERN.literal && resourceName === WILDCARD;

/** True when every name that `allow` is about is one that `deny` is about. */
function dominates(deny: AclBinding, allow: AclBinding): boolean {
  if (deny.patternType === ACL_PATTERN.prefixed) {
    return allow.resourceName.startsWith(deny.resourceName);
  }
  return allow.patternType === ACL_PATTERN.literal && allow.resourceName === deny.resourceName;
}

// Which ACLs a filter of DescribeAcls or DeleteAcls means (KIP-290), and what is wrong with a rule or a filter.
// Pure. The rules of matching and the faults are Kafka's.
import type { AclBinding } from '../../metadata/security.ts';
import {
  ACL_OPERATION,
  ACL_PATTERN,
  ACL_PERMISSION,
  ACL_RESOURCE,
  CLUSTER_NAME,
  WILDCARD,
} from '../../protocol/acls.ts';

/** In Kafka's numbers; null and `any` match everything. */
export interface AclFilter {
  readonly resourceType: number;
  readonly resourceName: string | null;
  readonly patternType: number;
  readonly principal: string | null;
  readonly host: string | null;
  readonly operation: number;
  readonly permission: number;
}

export function matches(filter: AclFilter, acl: AclBinding): boolean {
  const same = (wanted: string | null, is: string) => wanted === null || wanted === is;
  return (
    (filter.resourceType === ACL_RESOURCE.any || filter.resourceType === acl.resourceType) &&
    (filter.operation === ACL_OPERATION.any || filter.operation === acl.operation) &&
    (filter.permission === ACL_PERMISSION.any || filter.permission === acl.permission) &&
    same(filter.principal, acl.principal) &&
    same(filter.host, acl.host) &&
    matchesPattern(filter, acl)
  );
}

function matchesPattern({ patternType, resourceName }: AclFilter, acl: AclBinding): boolean {
  const { any, match, prefixed } = ACL_PATTERN;
  if (patternType !== any && patternType !== match && patternType !== acl.patternType) return false;
  if (resourceName === null || resourceName === acl.resourceName) return true;
  // `match`: every rule that concerns the resource of this name.
  if (patternType !== match) return false;
  return acl.patternType === prefixed
    ? resourceName.startsWith(acl.resourceName)
    : acl.resourceName === WILDCARD;
}

const known = (numbers: Readonly<Record<string, number>>, value: number) =>
  value !== 0 && Object.values(numbers).includes(value);

/** Why a filter can't be used, or undefined. */
export function filterFault(filter: AclFilter): string | undefined {
  const { resourceType, patternType, operation, permission } = filter;
  if (!known(ACL_RESOURCE, resourceType)) return `unknown resource type ${resourceType}`;
  if (!known(ACL_PATTERN, patternType)) return `unknown pattern type ${patternType}`;
  if (!known(ACL_OPERATION, operation)) return `unknown operation ${operation}`;
  if (!known(ACL_PERMISSION, permission)) return `unknown permission type ${permission}`;
  return undefined;
}

/** Why a rule can't be kept, or undefined. */
export function aclFault(acl: AclBinding): string | undefined {
  const fault = filterFault(acl);
  if (fault !== undefined) return fault;
  const { resourceType, resourceName, patternType } = acl;
  if (resourceType === ACL_RESOURCE.any) return 'a rule names one type of resource, not ANY';
  if (patternType !== ACL_PATTERN.literal && patternType !== ACL_PATTERN.prefixed) {
    return 'the pattern of a rule is LITERAL or PREFIXED';
  }
  if (acl.operation === ACL_OPERATION.any) return 'a rule names an operation or ALL, not ANY';
  if (acl.permission === ACL_PERMISSION.any) return 'a rule allows or denies: ANY does neither';
  if (resourceName === '') return 'the resource name is empty';
  if (resourceType === ACL_RESOURCE.cluster && resourceName !== CLUSTER_NAME) {
    return `the only resource of type CLUSTER is "${CLUSTER_NAME}", not "${resourceName}"`;
  }
  if (!/^[^:]+:./s.test(acl.principal)) {
    return `principal "${acl.principal}" is not TYPE:NAME, such as User:alice`;
  }
  if (acl.host === '') return 'the host is empty: use an address, or * for every host';
  return undefined;
}

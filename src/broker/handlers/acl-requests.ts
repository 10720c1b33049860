// What DescribeAcls, CreateAcls and DeleteAcls have in common: who may use them, and the filter as it is sent.
import { ErrorCode } from '../../protocol/errors.ts';
import type { AclFilter } from '../auth/acl-filter.ts';
import type { AclRules } from '../auth/authorizer.ts';
import type { RequestContext } from '../handler.ts';

/** The rules, or why this client can't have them. SECURITY_DISABLED without an authorizer, as in Kafka. */
export function aclsFor(
  { access, services }: RequestContext,
  operation: 'describe' | 'alter',
): { readonly acls: AclRules } | { readonly errorCode: number; readonly errorMessage: string } {
  if (!access.allows(operation, 'cluster')) {
    const doing = operation === 'alter' ? 'changing' : 'describing';
    const errorMessage = `${doing} ACLs is not allowed`;
    return { errorCode: ErrorCode.CLUSTER_AUTHORIZATION_FAILED, errorMessage };
  }
  const { acls } = services.authorizer;
  if (acls !== undefined) return { acls };
  const errorMessage = 'no authorizer is configured: see authorizer.class.name';
  return { errorCode: ErrorCode.SECURITY_DISABLED, errorMessage };
}

/** DescribeAcls sends one in its body, DeleteAcls a list of them. */
interface SentFilter {
  readonly resourceTypeFilter: number;
  readonly resourceNameFilter: string | null;
  readonly patternTypeFilter: number;
  readonly principalFilter: string | null;
  readonly hostFilter: string | null;
  readonly operation: number;
  readonly permissionType: number;
}

export function toAclFilter(filter: SentFilter): AclFilter {
  return {
    resourceType: filter.resourceTypeFilter,
    resourceName: filter.resourceNameFilter,
    patternType: filter.patternTypeFilter,
    principal: filter.principalFilter,
    host: filter.hostFilter,
    operation: filter.operation,
    permission: filter.permissionType,
  };
}

// DescribeAcls (29), versions 1–3: the rules that a filter matches, by resource. v1 pattern types (KIP-290), v3 users.
// Without an authorizer SECURITY_DISABLED, as in Kafka.

import type { AclBinding } from '../../metadata/security.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type DescribeAclsReply,
  describeAclsApi,
} from '../../protocol/messages/29-describe-acls.ts';
import { filterFault } from '../auth/acl-filter.ts';
import type { Handler } from '../handler.ts';

type ResourceReply = DescribeAclsReply['resources'][number];

export const describeAclsHandler: Handler<typeof describeAclsApi> = {
  api: describeAclsApi,
  versions: { min: 1, max: 3 },
  handle(request, { access, services }) {
    if (!access.allows('describe', 'cluster')) {
      return refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 'describing ACLs is not allowed');
    }
    const { acls } = services.authorizer;
    if (acls === undefined) return refusal(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER);
    const filter = {
      resourceType: request.resourceTypeFilter,
      resourceName: request.resourceNameFilter,
      patternType: request.patternTypeFilter,
      principal: request.principalFilter,
      host: request.hostFilter,
      operation: request.operation,
      permission: request.permissionType,
    };
    const fault = filterFault(filter);
    if (fault !== undefined) return refusal(ErrorCode.INVALID_REQUEST, fault);
    return { errorCode: 0, errorMessage: null, resources: byResource(acls.list(filter)) };
  },
  failed: (_request, { code, message }) => refusal(code, message),
};

/** What the ACL APIs answer where no authorizer is configured. */
export const NO_AUTHORIZER = 'no authorizer is configured: see authorizer.class.name';

function refusal(errorCode: number, errorMessage: string): DescribeAclsReply {
  return { errorCode, errorMessage, resources: [] };
}

function byResource(acls: readonly AclBinding[]): ResourceReply[] {
  const resources = new Map<string, ResourceReply & { acls: ResourceReply['acls'][number][] }>();
  for (const acl of acls) {
    const { resourceType, resourceName, patternType } = acl;
    const key = `${resourceType} ${patternType} ${resourceName}`;
    let resource = resources.get(key);
    if (resource === undefined) {
      resource = { resourceType, resourceName, patternType, acls: [] };
      resources.set(key, resource);
    }
    const { principal, host, operation, permission } = acl;
    resource.acls.push({ principal, host, operation, permissionType: permission });
  }
  return [...resources.values()];
}

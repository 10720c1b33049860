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
import { aclsFor, toAclFilter } from './acl-requests.ts';

type ResourceReply = DescribeAclsReply['resources'][number];

export const describeAclsHandler: Handler<typeof describeAclsApi> = {
  api: describeAclsApi,
  versions: { min: 1, max: 3 },
  handle(request, context) {
    const found = aclsFor(context, 'describe');
    if (!('acls' in found)) return refusal(found.errorCode, found.errorMessage);
    const filter = toAclFilter(request);
    const fault = filterFault(filter);
    if (fault !== undefined) return refusal(ErrorCode.INVALID_REQUEST, fault);
    return { errorCode: 0, errorMessage: null, resources: byResource(found.acls.list(filter)) };
  },
  failed: (_request, { code, message }) => refusal(code, message),
};

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

// DeleteAcls (31), versions 1–3: removes what each filter matches and lists it. v1 pattern types (KIP-290), v3 users.
// Filters see the rules as they were before the request: two that match the same rule both list it, as in Kafka.
import type { AclBinding } from '../../metadata/security.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type DeleteAclsReply,
  type DeleteAclsRequest,
  deleteAclsApi,
} from '../../protocol/messages/31-delete-acls.ts';
import { filterFault } from '../auth/acl-filter.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { aclsFor, toAclFilter } from './acl-requests.ts';

type FilterResult = DeleteAclsReply['filterResults'][number];

export const deleteAclsHandler: Handler<typeof deleteAclsApi> = {
  api: deleteAclsApi,
  versions: { min: 1, max: 3 },
  async handle(request, context) {
    const found = aclsFor(context, 'alter');
    if (!('acls' in found)) return refusal(request, found.errorCode, found.errorMessage);
    const { acls } = found;
    const removed: AclBinding[] = [];
    const filterResults = request.filters.map(toAclFilter).map((filter) => {
      const fault = filterFault(filter);
      if (fault !== undefined) return invalid(context, fault);
      const matching = acls.list(filter);
      removed.push(...matching);
      return { errorCode: 0, errorMessage: null, matchingAcls: matching.map(toReply) };
    });
    await acls.remove(removed);
    return { filterResults };
  },
  failed: (request, { code, message }) => refusal(request, code, message),
};

function toReply({ permission, ...acl }: AclBinding): FilterResult['matchingAcls'][number] {
  return { errorCode: 0, errorMessage: null, ...acl, permissionType: permission };
}

function invalid(context: RequestContext, errorMessage: string): FilterResult {
  const errorCode = ErrorCode.INVALID_REQUEST;
  context.countError(errorCode);
  return { errorCode, errorMessage, matchingAcls: [] };
}

function refusal({ filters }: DeleteAclsRequest, errorCode: number, errorMessage: string) {
  return { filterResults: filters.map(() => ({ errorCode, errorMessage, matchingAcls: [] })) };
}

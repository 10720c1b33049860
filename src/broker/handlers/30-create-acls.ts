// CreateAcls (30), versions 1–3: adds rules, each with its own outcome; one that is there already is no error.
// v1 pattern types (KIP-290), v3 users. In force for every request that starts after the reply.
import { FloeError } from '../../base/error.ts';
import type { AclBinding } from '../../metadata/security.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { type CreateAclsRequest, createAclsApi } from '../../protocol/messages/30-create-acls.ts';
import { aclFault } from '../auth/acl-filter.ts';
import { kafkaCodeOf } from '../failures.ts';
import type { Handler } from '../handler.ts';
import { aclsFor } from './acl-requests.ts';

export const createAclsHandler: Handler<typeof createAclsApi> = {
  api: createAclsApi,
  versions: { min: 1, max: 3 },
  async handle(request, context) {
    const found = aclsFor(context, 'alter');
    if (!('acls' in found)) return refusal(request, found.errorCode, found.errorMessage);
    const { acls } = found;
    const bindings = request.creations.map(toBinding);
    const faults = bindings.map(aclFault);
    const good = bindings.filter((_acl, index) => faults[index] === undefined);
    let refused: FloeError | undefined;
    try {
      await acls.add(good);
    } catch (caught) {
      refused = FloeError.from(caught);
    }
    return {
      results: faults.map((fault) => {
        if (fault !== undefined) {
          context.countError(ErrorCode.INVALID_REQUEST);
          return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage: fault };
        }
        if (refused === undefined) return { errorCode: 0, errorMessage: null };
        const exhausted = refused.code === 'exhausted';
        const errorCode = exhausted ? ErrorCode.POLICY_VIOLATION : kafkaCodeOf(refused);
        return { errorCode, errorMessage: refused.message };
      }),
    };
  },
};

function toBinding(creation: CreateAclsRequest['creations'][number]): AclBinding {
  const { resourceType, resourceName, resourcePatternType, permissionType, ...rest } = creation;
  const { principal, host, operation } = rest;
  return {
    resourceType,
    resourceName,
    patternType: resourcePatternType,
    principal,
    host,
    operation,
    permission: permissionType,
  };
}

function refusal({ creations }: CreateAclsRequest, errorCode: number, errorMessage: string) {
  return { results: creations.map(() => ({ errorCode, errorMessage })) };
}

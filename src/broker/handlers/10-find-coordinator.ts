// FindCoordinator (10), versions 0–6: who coordinates a group (key type 0) or a transactional id (1): the holder of the
// lease of its shard; COORDINATOR_NOT_AVAILABLE while there is none. v4 several keys at once.
// Key type 2 (share groups, v6) and unknown ones are refused with INVALID_REQUEST.
import { ErrorCode } from '../../protocol/errors.ts';
import { findCoordinatorApi } from '../../protocol/messages/10-find-coordinator.ts';
import type { Handler, RequestContext } from '../handler.ts';

const GROUP = 0;
const TRANSACTION = 1;

export const findCoordinatorHandler: Handler<typeof findCoordinatorApi> = {
  api: findCoordinatorApi,
  versions: { min: 0, max: 6 },
  handle({ key, keyType, coordinatorKeys }, context) {
    if (context.apiVersion < 4) {
      return { ...coordinator(keyType, key, context), key, coordinators: [] };
    }
    const coordinators = coordinatorKeys.map((each) => {
      const found = coordinator(keyType, each, context);
      if (found.errorCode !== 0) context.countError(found.errorCode);
      return { key: each, ...found };
    });
    return { ...NOBODY, errorCode: 0, errorMessage: null, coordinators };
  },
};

const NOBODY = { nodeId: -1, host: '', port: -1 } as const;

function coordinator(
  keyType: number,
  key: string,
  { services, access, connection }: RequestContext,
) {
  const refusal = (errorCode: number, errorMessage: string) => ({
    errorCode,
    errorMessage,
    ...NOBODY,
  });
  if (keyType !== GROUP && keyType !== TRANSACTION) {
    const why = `coordinators of key type ${keyType} are not served`;
    return refusal(ErrorCode.INVALID_REQUEST, why);
  }
  if (keyType === GROUP && !access.allows('describe', 'group', key)) {
    return refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, 'describing the group is not allowed');
  }
  if (keyType === TRANSACTION && !access.allows('describe', 'transactionalId', key)) {
    const why = 'describing the transactional id is not allowed';
    return refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, why);
  }
  const kind = keyType === GROUP ? 'groups' : 'transactions';
  const found = services.cluster.coordinator(kind, key, connection.listener);
  if (found === undefined)
    return refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, 'nobody coordinates it yet: try again');
  const { nodeId, host, port } = found;
  return { errorCode: 0, errorMessage: null, nodeId, host, port };
}

// FindCoordinator (10), versions 0–6: who coordinates a group (key type 0) or a transactional id (1): this node.
// v4 several keys at once. Transactions aren't served yet, but producers ask before InitProducerId tells them so.
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
    const found = coordinator(keyType, context);
    if (found.errorCode !== 0) context.countError(found.errorCode);
    const coordinators = coordinatorKeys.map((each) => ({ key: each, ...found }));
    return context.apiVersion >= 4
      ? { ...found, coordinators }
      : { ...found, key, coordinators: [] };
  },
};

function coordinator(keyType: number, { services, connection }: RequestContext) {
  if (keyType !== GROUP && keyType !== TRANSACTION) {
    return {
      errorCode: ErrorCode.INVALID_REQUEST,
      errorMessage: `coordinators of key type ${keyType} are not served`,
      nodeId: -1,
      host: '',
      port: -1,
    };
  }
  const { host, port } = services.cluster.endpoint(connection.listener);
  return { errorCode: 0, errorMessage: null, nodeId: services.cluster.nodeId, host, port };
}

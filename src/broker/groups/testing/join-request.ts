// A JoinGroup of a consumer of the topic `orders`, as tests vary it.
import { encodeSubscription } from '../../../protocol/messages/consumer-protocol.ts';
import type { JoinRequest } from '../coordinator.ts';

export function joinRequest(others: Partial<JoinRequest> = {}): JoinRequest {
  return {
    memberId: '',
    instanceId: null,
    clientId: 'client',
    clientHost: '/127.0.0.1',
    sessionTimeoutMs: 10_000,
    rebalanceTimeoutMs: 30_000,
    protocolType: 'consumer',
    protocols: [{ name: 'range', metadata: encodeSubscription({ topics: ['orders'] }) }],
    requireMemberId: false,
    canSkipAssignment: true,
    ...others,
  };
}

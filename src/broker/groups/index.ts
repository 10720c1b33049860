// Consumer groups as the broker's composition root sees them: a coordinator, and the handlers that use it.

import type { OffsetFetchRequest } from '../../protocol/messages/09-offset-fetch.ts';
import { afterLoad } from '../after-load.ts';
import type { AnyHandler } from '../handler.ts';
import { offsetCommitHandler } from '../handlers/08-offset-commit.ts';
import { offsetFetchHandler } from '../handlers/09-offset-fetch.ts';
import { findCoordinatorHandler } from '../handlers/10-find-coordinator.ts';
import { joinGroupHandler } from '../handlers/11-join-group.ts';
import { heartbeatHandler } from '../handlers/12-heartbeat.ts';
import { leaveGroupHandler } from '../handlers/13-leave-group.ts';
import { syncGroupHandler } from '../handlers/14-sync-group.ts';
import { describeGroupsHandler } from '../handlers/15-describe-groups.ts';
import { listGroupsHandler } from '../handlers/16-list-groups.ts';
import { deleteGroupsHandler } from '../handlers/42-delete-groups.ts';
import { offsetDeleteHandler } from '../handlers/47-offset-delete.ts';
import { consumerGroupHeartbeatHandler } from '../handlers/68-consumer-group-heartbeat.ts';
import { consumerGroupDescribeHandler } from '../handlers/69-consumer-group-describe.ts';
import type { GroupCoordinator } from './coordinator.ts';

export { GroupCoordinator } from './coordinator.ts';
export { groupSettings } from './settings.ts';

/** All APIs of groups, in both protocols, and of their offsets. */
export function groupHandlers(groups: GroupCoordinator): readonly AnyHandler[] {
  return [
    afterLoad(offsetCommitHandler(groups), groups, groupOf),
    afterLoad(offsetFetchHandler(groups), groups, fetchedGroups),
    findCoordinatorHandler,
    afterLoad(joinGroupHandler(groups), groups, groupOf),
    afterLoad(heartbeatHandler(groups), groups, groupOf),
    afterLoad(leaveGroupHandler(groups), groups, groupOf),
    afterLoad(syncGroupHandler(groups), groups, groupOf),
    afterLoad(describeGroupsHandler(groups), groups, (asked) => asked.groups),
    listGroupsHandler(groups),
    afterLoad(deleteGroupsHandler(groups), groups, (asked) => asked.groupsNames),
    afterLoad(offsetDeleteHandler(groups), groups, groupOf),
    afterLoad(consumerGroupHeartbeatHandler(groups), groups, groupOf),
    afterLoad(consumerGroupDescribeHandler(groups), groups, ({ groupIds }) => groupIds),
  ];
}

const groupOf = ({ groupId }: { readonly groupId: string }) => [groupId];

/** Of v8 on several in one request. */
const fetchedGroups = ({ groupId, groups }: OffsetFetchRequest) =>
  groups.length > 0 ? groups.map((group) => group.groupId) : [groupId];

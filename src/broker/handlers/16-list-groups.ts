// ListGroups (16), versions 0–5: the groups that this node coordinates; clients ask every node and join the answers. v4 filter by state, v5 by type; names of states and
// types are compared without regard to case, unknown ones match nothing.
import { listGroupsApi } from '../../protocol/messages/16-list-groups.ts';
import { CONSUMER_PROTOCOL } from '../groups/classic/subscription.ts';
import type { GroupCoordinator } from '../groups/coordinator.ts';
import { stateOf } from '../groups/entry.ts';
import type { Handler } from '../handler.ts';

export function listGroupsHandler(groups: GroupCoordinator): Handler<typeof listGroupsApi> {
  return {
    api: listGroupsApi,
    versions: { min: 0, max: 5 },
    async handle({ statesFilter, typesFilter }, { access }) {
      const states = lowerCase(statesFilter);
      const types = lowerCase(typesFilter);
      // Transactions that ended on other nodes may have made groups.
      const fault = groups.listFault || (await groups.settle());
      if (fault !== 0) return { errorCode: fault, groups: [] };
      const all = access.allows('describe', 'cluster');
      const listed = groups
        .views()
        .filter(({ group }) => all || access.allows('describe', 'group', group.groupId))
        .map(({ group }) => ({
          groupId: group.groupId,
          protocolType: group.kind === 'classic' ? group.protocolType : CONSUMER_PROTOCOL,
          groupState: stateOf(group),
          groupType: group.kind,
        }))
        .filter(
          ({ groupState, groupType }) =>
            (states.size === 0 || states.has(groupState.toLowerCase())) &&
            (types.size === 0 || types.has(groupType)),
        );
      return { errorCode: 0, groups: listed };
    },
    failed: (_request, { code }) => ({ errorCode: code, groups: [] }),
  };
}

const lowerCase = (names: readonly string[]) => new Set(names.map((name) => name.toLowerCase()));

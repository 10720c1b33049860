// ListGroups (16), versions 0–5: the groups of this coordinator. v4 filter by state, v5 by type; names of states and
// types are compared without regard to case, unknown ones match nothing. All groups here are classic.
import { listGroupsApi } from '../../protocol/messages/16-list-groups.ts';
import type { GroupCoordinator } from '../groups/coordinator.ts';
import type { Handler } from '../handler.ts';

const TYPE = 'classic';

export function listGroupsHandler(groups: GroupCoordinator): Handler<typeof listGroupsApi> {
  return {
    api: listGroupsApi,
    versions: { min: 0, max: 5 },
    handle({ statesFilter, typesFilter }) {
      const states = lowerCase(statesFilter);
      const types = lowerCase(typesFilter);
      if (types.size > 0 && !types.has(TYPE)) return { errorCode: 0, groups: [] };
      const listed = groups
        .views()
        .filter(({ group }) => states.size === 0 || states.has(group.state.toLowerCase()))
        .map(({ group }) => ({
          groupId: group.groupId,
          protocolType: group.protocolType,
          groupState: group.state,
          groupType: TYPE,
        }));
      return { errorCode: 0, groups: listed };
    },
    failed: (_request, { code }) => ({ errorCode: code, groups: [] }),
  };
}

const lowerCase = (names: readonly string[]) => new Set(names.map((name) => name.toLowerCase()));

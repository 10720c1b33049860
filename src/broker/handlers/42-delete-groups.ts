// DeleteGroups (42), versions 0–2: removes groups without members, and their offsets.
import { ErrorCode } from '../../protocol/errors.ts';
import { deleteGroupsApi } from '../../protocol/messages/42-delete-groups.ts';
import type { GroupCoordinator } from '../groups/coordinator.ts';
import type { Handler } from '../handler.ts';

export function deleteGroupsHandler(groups: GroupCoordinator): Handler<typeof deleteGroupsApi> {
  return {
    api: deleteGroupsApi,
    versions: { min: 0, max: 2 },
    async handle({ groupsNames }, context) {
      const results = [...new Set(groupsNames)].map(async (groupId) => {
        const errorCode = context.access.allows('delete', 'group', groupId)
          ? await groups.delete(groupId)
          : ErrorCode.GROUP_AUTHORIZATION_FAILED;
        if (errorCode !== 0) context.countError(errorCode);
        return { groupId, errorCode };
      });
      return { results: await Promise.all(results) };
    },
    failed: ({ groupsNames }, { code }) => ({
      results: groupsNames.map((groupId) => ({ groupId, errorCode: code })),
    }),
  };
}

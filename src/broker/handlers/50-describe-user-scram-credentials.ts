// DescribeUserScramCredentials (50), version 0 (KIP-554): which mechanisms users have, and with how many iterations.
// Null or no users: all of them. Users of the configuration are not in the store, hence not here.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type DescribeUserScramCredentialsReply,
  describeUserScramCredentialsApi,
} from '../../protocol/messages/50-describe-user-scram-credentials.ts';
import { SCRAM } from '../auth/scram-keys.ts';
import type { Users } from '../auth/users.ts';
import type { Handler } from '../handler.ts';
import { repeated } from './repeated.ts';

type Result = DescribeUserScramCredentialsReply['results'][number];

export const describeUserScramCredentialsHandler: Handler<typeof describeUserScramCredentialsApi> =
  {
    api: describeUserScramCredentialsApi,
    versions: { min: 0, max: 0 },
    handle(request, { access, services }) {
      if (!access.allows('describe', 'cluster')) {
        const errorMessage = 'describing users is not allowed';
        return { errorCode: ErrorCode.CLUSTER_AUTHORIZATION_FAILED, errorMessage, results: [] };
      }
      const { users } = services.security;
      const asked = request.users?.map(({ name }) => name) ?? [];
      const names = asked.length > 0 ? [...new Set(asked)] : [...users.stored.keys()];
      const twice = repeated(asked);
      const results = names.map((name) => describe(users, name, twice.has(name)));
      return { errorCode: 0, errorMessage: null, results };
    },
    failed: (_request, { code, message }) => ({
      errorCode: code,
      errorMessage: message,
      results: [],
    }),
  };

function describe(users: Users, user: string, twice: boolean): Result {
  const refusal = (errorCode: number, errorMessage: string) => ({
    user,
    errorCode,
    errorMessage,
    credentialInfos: [],
  });
  if (twice) {
    const why = `Cannot describe SCRAM credentials for the same user twice in a single request: ${user}`;
    return refusal(ErrorCode.DUPLICATE_RESOURCE, why);
  }
  const credentials = users.stored.get(user);
  if (credentials === undefined) {
    const why = `Attempt to describe a user credential that does not exist: ${user}`;
    return refusal(ErrorCode.RESOURCE_NOT_FOUND, why);
  }
  const credentialInfos = [...credentials.values()].map(({ mechanism, iterations }) => ({
    mechanism: SCRAM[mechanism].code,
    iterations,
  }));
  return { user, errorCode: 0, errorMessage: null, credentialInfos };
}

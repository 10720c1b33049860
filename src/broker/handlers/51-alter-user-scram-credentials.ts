// AlterUserScramCredentials (51), version 0 (KIP-554): sets and removes salted passwords; the client salts them.
// One outcome per user: a user named twice, or with one faulty wish, is left as it was. In force for connections that
// authenticate after the reply; those that have stay until their session ends, as in Kafka.
import type { CredentialName, ScramCredential, ScramMechanism } from '../../metadata/security.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type AlterUserScramCredentialsReply,
  type AlterUserScramCredentialsRequest,
  alterUserScramCredentialsApi,
} from '../../protocol/messages/51-alter-user-scram-credentials.ts';
import {
  credentialOf,
  MAX_ITERATIONS,
  MIN_ITERATIONS,
  SCRAM,
  SCRAM_MECHANISMS,
} from '../auth/scram-keys.ts';
import { MAX_USERS, type Users } from '../auth/users.ts';
import type { Handler } from '../handler.ts';
import type { Fault } from '../topic-creation.ts';

type Upsertion = AlterUserScramCredentialsRequest['upsertions'][number];
type Result = AlterUserScramCredentialsReply['results'][number];

export const alterUserScramCredentialsHandler: Handler<typeof alterUserScramCredentialsApi> = {
  api: alterUserScramCredentialsApi,
  versions: { min: 0, max: 0 },
  async handle(request, context) {
    const { access, services } = context;
    if (!access.allows('alter', 'cluster')) {
      const errorMessage = 'changing users is not allowed';
      return refuseAll(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, errorMessage);
    }
    const { users } = services.security;
    const plan = planChanges(users, request);
    await users.alter(plan.set, plan.removed);
    for (const { errorCode } of plan.results) if (errorCode !== 0) context.countError(errorCode);
    return { results: plan.results };
  },
  failed: (request, { code, message }) => refuseAll(request, code, message),
};

interface Plan {
  readonly set: readonly ScramCredential[];
  readonly removed: readonly CredentialName[];
  readonly results: readonly Result[];
}

function planChanges(
  users: Users,
  { deletions, upsertions }: AlterUserScramCredentialsRequest,
): Plan {
  const removed: CredentialName[] = [];
  const set: ScramCredential[] = [];
  const results: Result[] = [];
  let added = 0;
  const names = [...deletions, ...upsertions].map(({ name }) => name);
  for (const user of new Set(names)) {
    const wishes = names.filter((name) => name === user).length;
    const deletion = deletions.find(({ name }) => name === user);
    const upsertion = upsertions.find(({ name }) => name === user);
    const mechanism = mechanismOf((deletion ?? upsertion)!.mechanism);
    if (!users.stored.has(user) && upsertion !== undefined) added += 1;
    const fault =
      wishes > 1
        ? refused(
            ErrorCode.DUPLICATE_RESOURCE,
            'A user credential cannot be altered twice in the same request',
          )
        : (nameFault(user, mechanism) ??
          (deletion !== undefined
            ? deletionFault(users, { user, mechanism: mechanism! })
            : upsertionFault(upsertion!, users.stored.size + added)));
    results.push({ user, ...(fault ?? { errorCode: 0, errorMessage: null }) });
    if (fault !== undefined) continue;
    if (deletion !== undefined) removed.push({ user, mechanism: mechanism! });
    else set.push(toCredential(upsertion!, mechanism!));
  }
  return { set, removed, results };
}

function mechanismOf(code: number): ScramMechanism | undefined {
  return SCRAM_MECHANISMS.find((mechanism) => SCRAM[mechanism].code === code);
}

function nameFault(user: string, mechanism: ScramMechanism | undefined): Fault | undefined {
  if (user === '') return refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, 'Username must not be empty');
  return mechanism === undefined
    ? refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, 'Unknown SCRAM mechanism')
    : undefined;
}

function deletionFault(users: Users, { user, mechanism }: CredentialName): Fault | undefined {
  if (users.stored.get(user)?.has(mechanism)) return undefined;
  const why = 'Attempt to delete a user credential that does not exist';
  return refused(ErrorCode.RESOURCE_NOT_FOUND, why);
}

function upsertionFault(
  { name, iterations, salt, saltedPassword }: Upsertion,
  users: number,
): Fault | undefined {
  const bad = (why: string) => refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, why);
  if (iterations < MIN_ITERATIONS) return bad(`Too few iterations: at least ${MIN_ITERATIONS}`);
  if (iterations > MAX_ITERATIONS) return bad(`Too many iterations: at most ${MAX_ITERATIONS}`);
  if (salt.length === 0 || saltedPassword.length === 0) return bad('Salt or password is empty');
  if (salt.length > MAX_BYTES || saltedPassword.length > MAX_BYTES || name.length > MAX_BYTES) {
    return bad(`Name, salt and salted password have at most ${MAX_BYTES} bytes each`);
  }
  return users > MAX_USERS
    ? refused(ErrorCode.POLICY_VIOLATION, `there may be ${MAX_USERS} users at most`)
    : undefined;
}

/** More than any mechanism needs. */
const MAX_BYTES = 1_024;

function toCredential(upsertion: Upsertion, mechanism: ScramMechanism): ScramCredential {
  const { name: user, iterations, salt, saltedPassword } = upsertion;
  return credentialOf({ user, mechanism, iterations, salt: new Uint8Array(salt) }, saltedPassword);
}

function refused(errorCode: number, errorMessage: string): Fault {
  return { errorCode, errorMessage };
}

function refuseAll(
  { deletions, upsertions }: AlterUserScramCredentialsRequest,
  errorCode: number,
  errorMessage: string,
) {
  const users = new Set([...deletions, ...upsertions].map(({ name }) => name));
  return { results: [...users].map((user) => ({ user, errorCode, errorMessage })) };
}

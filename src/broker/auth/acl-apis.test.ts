// The ACL APIs over sockets: what is refused, with which code and words; filters of all kinds; no authorizer.
import { afterEach, expect, it } from 'vitest';
import { ErrorCode } from '../../protocol/errors.ts';
import { describeAclsApi } from '../../protocol/messages/29-describe-acls.ts';
import { createAclsApi } from '../../protocol/messages/30-create-acls.ts';
import { deleteAclsApi } from '../../protocol/messages/31-delete-acls.ts';
import { RawClient } from '../testing/raw-client.ts';
import { type SecureBroker, startSecureBroker } from '../testing/secure-broker.ts';

let test: SecureBroker;
let client: RawClient;

async function start(given: Readonly<Record<string, string>> = {}): Promise<void> {
  test = await startSecureBroker({
    'authorizer.class.name': 'StandardAuthorizer',
    'super.users': 'User:ANONYMOUS',
    ...given,
  });
  client = await RawClient.connect(test.port);
}

afterEach(async () => {
  client.close();
  await test.stop();
});

const GOOD = {
  resourceType: 2,
  resourceName: 'orders',
  resourcePatternType: 3,
  principal: 'User:alice',
  host: '*',
  operation: 3,
  permissionType: 3,
};
const ALL = {
  resourceTypeFilter: 1,
  resourceNameFilter: null,
  patternTypeFilter: 1,
  principalFilter: null,
  hostFilter: null,
  operation: 1,
  permissionType: 1,
};

const create = async (...creations: Partial<typeof GOOD>[]) =>
  (
    await client.call(createAclsApi, 3, {
      creations: creations.map((one) => ({ ...GOOD, ...one })),
    })
  ).results;
const list = (filter: object = {}) => client.call(describeAclsApi, 3, { ...ALL, ...filter });
const names = async (filter: object) =>
  (await list(filter)).resources.map(({ resourceName }) => resourceName).toSorted();

it.each([
  ['an unknown resource type', { resourceType: 99 }, /resource type 99/],
  ['any resource type', { resourceType: 1 }, /not ANY/],
  ['a pattern of filters', { resourcePatternType: 2 }, /LITERAL or PREFIXED/],
  ['any operation', { operation: 1 }, /not ANY/],
  ['an unknown operation', { operation: 77 }, /operation 77/],
  ['no permission', { permissionType: 1 }, /allows or denies/],
  ['an empty name', { resourceName: '' }, /empty/],
  ['another cluster', { resourceType: 4, resourceName: 'mine' }, /kafka-cluster/],
  ['a principal without type', { principal: 'alice' }, /User:alice/],
  ['an empty host', { host: '' }, /host is empty/],
])('refuses a rule with %s, and keeps the good one beside it', async (_what, bad, message) => {
  await start();
  const [refused, kept] = await create(bad, {});
  expect(refused!.errorCode).toBe(ErrorCode.INVALID_REQUEST);
  expect(refused!.errorMessage).toMatch(message);
  expect(kept).toEqual({ errorCode: 0, errorMessage: null });
  expect(await names({})).toEqual(['orders']);
});

it('takes a rule twice as one', async () => {
  await start();
  expect((await create({}, {})).map(({ errorCode }) => errorCode)).toEqual([0, 0]);
  await create({});
  const { resources } = await list();
  expect(resources).toHaveLength(1);
  expect(resources[0]!.acls).toHaveLength(1);
});

it('finds rules by every kind of pattern', async () => {
  await start();
  await create(
    {},
    { resourceName: 'ord', resourcePatternType: 4 },
    { resourceName: '*' },
    { resourceName: 'other' },
    { resourceName: 'orders', resourceType: 3 },
  );
  const topic = { resourceTypeFilter: 2 };
  expect(await names(topic)).toEqual(['*', 'ord', 'orders', 'other']);
  expect(await names({ ...topic, patternTypeFilter: 4 })).toEqual(['ord']);
  const about = { ...topic, resourceNameFilter: 'orders' };
  expect(await names(about)).toEqual(['orders']);
  expect(await names({ ...about, patternTypeFilter: 2 })).toEqual(['*', 'ord', 'orders']);
  expect(await names({ ...about, principalFilter: 'User:bob' })).toEqual([]);
});

it('removes what each filter matches and lists it; a filter that is none removes nothing', async () => {
  await start();
  await create({}, { resourceName: 'other' });
  const { filterResults } = await client.call(deleteAclsApi, 3, {
    filters: [
      { ...ALL, resourceNameFilter: 'orders' },
      { ...ALL, operation: 0 },
      { ...ALL, resourceNameFilter: 'nothing' },
    ],
  });
  expect(filterResults.map(({ errorCode }) => errorCode)).toEqual([
    0,
    ErrorCode.INVALID_REQUEST,
    0,
  ]);
  expect(filterResults.map(({ matchingAcls }) => matchingAcls.length)).toEqual([1, 0, 0]);
  expect(await names({})).toEqual(['other']);
});

it('refuses filters of unknown kind', async () => {
  await start();
  const reply = await list({ patternTypeFilter: 0 });
  expect(reply).toMatchObject({ errorCode: ErrorCode.INVALID_REQUEST, resources: [] });
});

it('is full at its limit, and says so', async () => {
  await start({ 'authorizer.max.acls': '1' });
  await create({});
  const [refused] = await create({ resourceName: 'second' });
  expect(refused).toMatchObject({ errorCode: ErrorCode.POLICY_VIOLATION });
  expect(refused!.errorMessage).toContain('authorizer.max.acls');
});

it('says SECURITY_DISABLED where there is no authorizer', async () => {
  await start({ 'authorizer.class.name': '' });
  expect((await list()).errorCode).toBe(ErrorCode.SECURITY_DISABLED);
  expect((await create({}))[0]!.errorCode).toBe(ErrorCode.SECURITY_DISABLED);
  const { filterResults } = await client.call(deleteAclsApi, 3, { filters: [ALL] });
  expect(filterResults[0]!.errorCode).toBe(ErrorCode.SECURITY_DISABLED);
});

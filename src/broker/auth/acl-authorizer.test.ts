// Who may do what by which rules: precedence, implied operations, patterns, hosts, super users; look-ups by index
// agree with a scan over all rules; answers kept by clients follow changes.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { AclBinding, SecurityMetadata } from '../../metadata/security.ts';
import {
  ACL_OPERATION,
  ACL_PATTERN,
  ACL_PERMISSION,
  ACL_RESOURCE,
  CLUSTER_NAME,
} from '../../protocol/acls.ts';
import { Access } from './access.ts';
import { AclAuthorizer } from './acl-authorizer.ts';
import type { Operation, Requester, ResourceType } from './authorizer.ts';

interface Rule {
  readonly type?: ResourceType;
  readonly name?: string;
  readonly prefixed?: true;
  readonly principal?: string;
  readonly host?: string;
  readonly deny?: true;
}

function rule(operation: Operation | 'all', about: Rule = {}): AclBinding {
  return {
    resourceType: ACL_RESOURCE[about.type ?? 'topic'],
    resourceName: about.name ?? 'orders',
    patternType: about.prefixed ? ACL_PATTERN.prefixed : ACL_PATTERN.literal,
    principal: about.principal ?? 'User:alice',
    host: about.host ?? '*',
    operation: ACL_OPERATION[operation],
    permission: about.deny ? ACL_PERMISSION.deny : ACL_PERMISSION.allow,
  };
}

const store: SecurityMetadata = {
  load: async () => ({ credentials: [], acls: [] }),
  alterCredentials: async () => {},
  alterAcls: async () => {},
};

function authorizer(
  acls: readonly AclBinding[],
  options: { readonly superUsers?: readonly string[]; readonly openByDefault?: boolean } = {},
) {
  return new AclAuthorizer({
    store,
    acls,
    superUsers: options.superUsers ?? [],
    openByDefault: options.openByDefault ?? false,
    maxAcls: 100,
  });
}

const alice: Requester = { principal: { type: 'User', name: 'alice' }, host: '10.0.0.1' };
const bob: Requester = { principal: { type: 'User', name: 'bob' }, host: '10.0.0.2' };

it('closes what no rule is about, unless it is open by default', () => {
  expect(authorizer([]).allows(alice, 'read', 'topic', 'orders')).toBe(false);
  const open = authorizer([rule('read', { principal: 'User:bob' })], { openByDefault: true });
  expect(open.allows(alice, 'read', 'topic', 'other')).toBe(true);
  // A rule about somebody else closes the resource to all others.
  expect(open.allows(alice, 'read', 'topic', 'orders')).toBe(false);
  expect(open.allows(bob, 'read', 'topic', 'orders')).toBe(true);
});

it('lets a rule that denies win', () => {
  const rules = [
    rule('all', { name: 'o', prefixed: true }),
    rule('read', { name: '*', deny: true, host: '10.0.0.1' }),
  ];
  expect(authorizer(rules).allows(alice, 'read', 'topic', 'orders')).toBe(false);
  expect(authorizer(rules).allows(alice, 'write', 'topic', 'orders')).toBe(true);
  const elsewhere = { ...alice, host: '10.0.0.9' };
  expect(authorizer(rules).allows(elsewhere, 'read', 'topic', 'orders')).toBe(true);
});

it('lets super users do everything, whatever denies it', () => {
  const rules = [rule('all', { deny: true })];
  const root = authorizer(rules, { superUsers: ['User:alice'] });
  expect(root.allows(alice, 'delete', 'topic', 'orders')).toBe(true);
  expect(root.allows(alice, 'alter', 'cluster', CLUSTER_NAME)).toBe(true);
  expect(root.allows(bob, 'alter', 'cluster', CLUSTER_NAME)).toBe(false);
});

const IMPLIED: readonly [has: Operation | 'all', wants: Operation, may: boolean][] = [
  ['read', 'describe', true],
  ['write', 'describe', true],
  ['delete', 'describe', true],
  ['alter', 'describe', true],
  ['create', 'describe', false],
  ['alterConfigs', 'describeConfigs', true],
  ['alterConfigs', 'describe', false],
  ['describeConfigs', 'alterConfigs', false],
  ['describe', 'read', false],
  ['all', 'idempotentWrite', true],
];

it.each(IMPLIED)('%s allowed: %s is %s', (has, wants, may) => {
  expect(authorizer([rule(has)]).allows(alice, wants, 'topic', 'orders')).toBe(may);
});

it('denies only what is named: denying read leaves describe', () => {
  const rules = [rule('write'), rule('read', { deny: true })];
  expect(authorizer(rules).allows(alice, 'describe', 'topic', 'orders')).toBe(true);
});

it('tells types of resources apart', () => {
  const rules = [rule('read', { type: 'group', name: 'g' })];
  expect(authorizer(rules).allows(alice, 'read', 'group', 'g')).toBe(true);
  expect(authorizer(rules).allows(alice, 'read', 'topic', 'g')).toBe(false);
});

it('takes the literal * for every name, the prefix * for names that begin with it', () => {
  const literal = authorizer([rule('read', { name: '*' })]);
  expect(literal.allows(alice, 'read', 'topic', 'anything')).toBe(true);
  const prefix = authorizer([rule('read', { name: '*', prefixed: true })]);
  expect(prefix.allows(alice, 'read', 'topic', 'anything')).toBe(false);
});

it('answers for any resource of a type, as producer ids need', () => {
  const may = (rules: readonly AclBinding[], open = false) =>
    authorizer(rules, { openByDefault: open }).allowsAny(alice, 'write', 'topic');
  expect(may([])).toBe(false);
  expect(may([], true)).toBe(true);
  expect(may([rule('write')])).toBe(true);
  expect(may([rule('write'), rule('write', { deny: true })])).toBe(false);
  expect(may([rule('write'), rule('write', { name: 'ord', prefixed: true, deny: true })])).toBe(
    false,
  );
  expect(may([rule('write', { prefixed: true }), rule('write', { deny: true })])).toBe(true);
  expect(may([rule('write', { name: '*' }), rule('write', { deny: true })])).toBe(true);
  expect(may([rule('write'), rule('all', { name: '*', deny: true })])).toBe(false);
  expect(may([rule('write', { principal: 'User:bob', name: '*' })], true)).toBe(false);
});

it('refuses more rules than the limit', async () => {
  const full = authorizer([]);
  const many = Array.from({ length: 101 }, (_, n) => rule('read', { name: `t${n}` }));
  await expect(full.add(many)).rejects.toMatchObject({ code: 'exhausted' });
  expect(full.size).toBe(0);
});

it('makes clients forget what they may when rules change', async () => {
  const rules = authorizer([]);
  const access = new Access(rules, alice);
  expect(access.allows('read', 'topic', 'orders')).toBe(false);
  await rules.add([rule('read')]);
  expect(access.allows('read', 'topic', 'orders')).toBe(true);
  expect(access.operations('topic', 'orders')).toBe(
    (1 << ACL_OPERATION.read) | (1 << ACL_OPERATION.describe),
  );
  await rules.remove([rule('read')]);
  expect(access.allows('read', 'topic', 'orders')).toBe(false);
});

it('finds by index what a scan over all rules finds', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '*'), minLength: 1, maxLength: 4 });
  const anyRule = fc.record({
    resourceType: fc.constantFrom(ACL_RESOURCE.topic, ACL_RESOURCE.group),
    resourceName: name,
    patternType: fc.constantFrom(ACL_PATTERN.literal, ACL_PATTERN.prefixed),
    principal: fc.constantFrom('User:alice', 'User:bob', 'User:*'),
    host: fc.constantFrom('*', '10.0.0.1', '10.0.0.2'),
    operation: fc.constantFrom(ACL_OPERATION.read, ACL_OPERATION.describe, ACL_OPERATION.all),
    permission: fc.constantFrom(ACL_PERMISSION.allow, ACL_PERMISSION.deny),
  });
  const options = [fc.array(anyRule, { maxLength: 12 }), fc.array(fc.nat(11)), name] as const;
  fc.assert(
    fc.asyncProperty(...options, async (rules, removed, resource) => {
      const indexed = authorizer(rules);
      const gone = removed.flatMap((n) => rules[n] ?? []);
      await indexed.remove(gone);
      const text = (acl: AclBinding) => JSON.stringify(acl);
      const goneTexts = new Set(gone.map(text));
      const left = rules.filter((acl) => !goneTexts.has(text(acl)));
      for (const operation of ['read', 'describe'] as const) {
        expect(indexed.allows(alice, operation, 'topic', resource)).toBe(
          scan(left, operation, resource),
        );
      }
    }),
    { seed: 4, numRuns: 500 },
  );
});

/** The decision spelled out for alice, without index. */
function scan(rules: readonly AclBinding[], operation: Operation, resource: string): boolean {
  const mine = rules.filter(
    (acl) =>
      acl.resourceType === ACL_RESOURCE.topic &&
      (acl.patternType === ACL_PATTERN.literal
        ? acl.resourceName === resource || acl.resourceName === '*'
        : resource.startsWith(acl.resourceName)) &&
      acl.principal !== 'User:bob' &&
      acl.host !== '10.0.0.2',
  );
  const { all, read, describe } = ACL_OPERATION;
  const wanted: number[] = operation === 'read' ? [read, all] : [describe, all];
  const denies = mine.filter(({ permission }) => permission === ACL_PERMISSION.deny);
  if (denies.some((acl) => wanted.includes(acl.operation))) return false;
  const enough = operation === 'describe' ? [...wanted, read] : wanted;
  return mine.some(
    (acl) => acl.permission === ACL_PERMISSION.allow && enough.includes(acl.operation as never),
  );
}

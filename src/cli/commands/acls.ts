// floe acls add | list | remove: access rules, through the Kafka API. `list` and `remove` take the same words as `add`;
// what isn't said matches everything.
import { Command, Option } from 'commander';
import { FloeError } from '../../base/error.ts';
import {
  ACL_OPERATION,
  ACL_PATTERN,
  ACL_PERMISSION,
  ACL_RESOURCE,
  CLUSTER_NAME,
  createAclsApi,
  deleteAclsApi,
  describeAclsApi,
} from '../../protocol/index.ts';
import { KAFKA_SERVER } from '../kafka-client.ts';
import { throwKafkaError } from '../kafka-error.ts';
import { textTable } from '../text-table.ts';
import { withWire } from '../wire-client.ts';

interface AclFlags {
  readonly server: string;
  readonly principal?: string;
  readonly host?: string;
  readonly operation?: keyof typeof ACL_OPERATION;
  readonly deny?: boolean;
  readonly topic?: string;
  readonly group?: string;
  readonly transactionalId?: string;
  readonly cluster?: boolean;
  readonly prefixed?: boolean;
}

const OPERATIONS = Object.keys(ACL_OPERATION).filter(
  (name) => name !== 'unknown' && name !== 'any',
);

export function aclsCommand(): Command {
  const command = new Command('acls').description('access rules: add, list, remove');
  const words = (name: string, description: string) =>
    command
      .command(name)
      .description(description)
      .option('--principal <User:name>', 'whom it is about; User:* is everybody')
      .option('--host <address>', 'from where; * is everywhere')
      .addOption(new Option('--operation <name>', 'what').choices(OPERATIONS))
      .option('--deny', 'a rule that denies; without it one that allows')
      .option('--topic <name>', 'the topic; * is all')
      .option('--group <name>', 'the consumer group; * is all')
      .option('--transactional-id <name>', 'the transactional id; * is all')
      .option('--cluster', 'the cluster')
      .option('--prefixed', 'the name is the beginning of names')
      .option('--server <host:port>', 'the Kafka address', KAFKA_SERVER);
  words('add', 'a rule').addHelpText('after', ADD_EXAMPLE).action(addAcl);
  words('list', 'rules that fit').action(listAcls);
  words('remove', 'rules that fit').action(removeAcls);
  return command;
}

const ADD_EXAMPLE = `
Example: a consumer of all topics whose names begin with shop.
  floe acls add --principal User:alice --operation read --topic shop. --prefixed
  floe acls add --principal User:alice --operation read --group shop-readers`;

interface Resource {
  readonly type: number;
  readonly name: string;
}

function resourceOf({ topic, group, transactionalId, cluster }: AclFlags): Resource | undefined {
  const named: Resource[] = [];
  if (topic !== undefined) named.push({ type: ACL_RESOURCE.topic, name: topic });
  if (group !== undefined) named.push({ type: ACL_RESOURCE.group, name: group });
  if (transactionalId !== undefined) {
    named.push({ type: ACL_RESOURCE.transactionalId, name: transactionalId });
  }
  if (cluster === true) named.push({ type: ACL_RESOURCE.cluster, name: CLUSTER_NAME });
  if (named.length > 1) throw new FloeError('invalid', 'name one resource at a time');
  return named[0];
}

async function addAcl(flags: AclFlags): Promise<void> {
  const resource = resourceOf(flags);
  const { principal, operation, host = '*', deny, prefixed } = flags;
  if (resource === undefined || principal === undefined || operation === undefined) {
    const why =
      'a rule has --principal, --operation and one of --topic, --group, --transactional-id, --cluster';
    throw new FloeError('invalid', why);
  }
  const creation = {
    resourceType: resource.type,
    resourceName: resource.name,
    resourcePatternType: prefixed ? ACL_PATTERN.prefixed : ACL_PATTERN.literal,
    principal,
    host,
    operation: ACL_OPERATION[operation],
    permissionType: deny ? ACL_PERMISSION.deny : ACL_PERMISSION.allow,
  };
  await withWire(flags.server, async (client) => {
    const { results } = await client.ask(createAclsApi, { creations: [creation] });
    throwKafkaError('the rule', results[0]!.errorCode, results[0]!.errorMessage);
  });
  process.stdout.write('added\n');
}

function filterOf(flags: AclFlags) {
  const resource = resourceOf(flags);
  const { principal = null, host = null, operation, deny, prefixed } = flags;
  return {
    resourceTypeFilter: resource?.type ?? ACL_RESOURCE.any,
    resourceNameFilter: resource?.name ?? null,
    patternTypeFilter: prefixed ? ACL_PATTERN.prefixed : ACL_PATTERN.any,
    principalFilter: principal,
    hostFilter: host,
    operation: operation === undefined ? ACL_OPERATION.any : ACL_OPERATION[operation],
    permissionType: deny ? ACL_PERMISSION.deny : ACL_PERMISSION.any,
  };
}

async function listAcls(flags: AclFlags): Promise<void> {
  const reply = await withWire(flags.server, (client) =>
    client.ask(describeAclsApi, filterOf(flags)),
  );
  throwKafkaError('ACLs', reply.errorCode, reply.errorMessage);
  show(
    reply.resources.flatMap((resource) => resource.acls.map((acl) => ({ ...resource, ...acl }))),
  );
}

async function removeAcls(flags: AclFlags): Promise<void> {
  const filter = filterOf(flags);
  if (flags.principal === undefined && filter.resourceNameFilter === null) {
    throw new FloeError('invalid', 'which rules? Name a principal or a resource');
  }
  const { filterResults } = await withWire(flags.server, (client) =>
    client.ask(deleteAclsApi, { filters: [filter] }),
  );
  const [{ errorCode, errorMessage, matchingAcls }] = filterResults as [
    (typeof filterResults)[number],
  ];
  throwKafkaError('ACLs', errorCode, errorMessage);
  show(matchingAcls);
  process.stdout.write(`removed ${matchingAcls.length}\n`);
}

interface ShownAcl {
  readonly resourceType: number;
  readonly resourceName: string;
  readonly patternType: number;
  readonly principal: string;
  readonly host: string;
  readonly operation: number;
  readonly permissionType: number;
}

function show(acls: readonly ShownAcl[]): void {
  const rows = acls.map((acl) => [
    acl.principal,
    nameIn(ACL_PERMISSION, acl.permissionType),
    nameIn(ACL_OPERATION, acl.operation),
    `${nameIn(ACL_RESOURCE, acl.resourceType)} ${acl.resourceName}${acl.patternType === ACL_PATTERN.prefixed ? '…' : ''}`,
    acl.host,
  ]);
  process.stdout.write(textTable(['principal', '', 'operation', 'resource', 'host'], rows));
}

const nameIn = (names: Readonly<Record<string, number>>, value: number) =>
  Object.keys(names).find((name) => names[name] === value) ?? String(value);

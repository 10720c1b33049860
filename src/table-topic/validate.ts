// Checks a topic's table configs before they are set: each value, then what concerns other topics and the schema.
// Injected into the broker, which refuses CreateTopics and AlterConfigs with the sentence that comes out of here.
import { FloeError, isFloeError } from '../base/error.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { ProposedStruct } from '../formats/arrow/proposed-schema.ts';
import type { TopicDirectory } from '../metadata/topic-directory.ts';
import type { SchemaSource } from '../schema-registry/schema-source.ts';
import { columnSelection, selectColumns } from './column-selection.ts';
import { evolve } from './evolve.ts';
import { buildPartitionFields, buildSortFields } from './partition-spec.ts';
import {
  isEnabled,
  isTableTopicConfig,
  letterTopicName,
  parseTopicConfig,
  resolveTopicConfigs,
  type TopicConfigs,
  tableIdentifier,
} from './settings/index.ts';
import { newestColumns } from './sources/topic-sources.ts';
import { systemFields, wantedSystemColumns, wholeValue } from './system-columns.ts';

export interface TopicConfigValidator {
  /** True for names that this validator judges. */
  concerns(name: string): boolean;
  /**
   * `config`: the topic's whole config as it would be.
   * `mayWrite`: whether who sets it may write into a topic of that name.
   * @throws FloeError `invalid` or `unsupported`, naming config, value and remedy.
   */
  validate(
    topicName: string,
    config: Readonly<Record<string, string>>,
    mayWrite?: (topicName: string) => boolean,
  ): Promise<void>;
}

export function createTopicConfigValidator(deps: {
  readonly directory: TopicDirectory;
  readonly schemas: SchemaSource;
  readonly catalog: Pick<Catalog, 'checkTable'>;
}): TopicConfigValidator {
  return {
    concerns: isTableTopicConfig,
    async validate(topicName, config, mayWrite = () => true) {
      for (const [name, value] of Object.entries(config)) {
        if (isTableTopicConfig(name)) parseTopicConfig(name, value);
      }
      if (!isEnabled(config)) return;
      const resolved = resolveTopicConfigs(config);
      refuseClash(deps.directory, topicName, resolved);
      refuseVersion(resolved, deps.directory.byName(topicName)?.config);
      deps.catalog.checkTable({
        identifier: tableIdentifier(topicName, resolved),
        partitionSources: resolved['table.topic.partition.by'].map((one) => one.column.join('.')),
      });
      refuseLetterTopic(deps.directory, { topicName, config: resolved, mayWrite });
      refuseTransform(resolved);
      refuseDeclared(resolved);
      refuseUpsert(resolved);
      await refuseMissingConverter(deps.schemas, topicName, config);
      await checkLayout(deps.schemas, topicName, resolved);
    },
  };
}

/** Types are declared where nothing else tells them. */
function refuseDeclared(config: TopicConfigs): void {
  if (config['table.topic.columns'].length === 0) return;
  const kind = config['table.topic.convert.value.type'];
  if (kind === 'json' && config['table.topic.transform.value.type'] !== 'none') return;
  throw new FloeError(
    'invalid',
    'table.topic.columns: types are declared for plain JSON alone: set table.topic.convert.value.type to json, or leave them to the schema',
  );
}

/** Envelopes are records: text and bytes have none. */
function refuseTransform(config: TopicConfigs): void {
  if (config['table.topic.transform.value.type'] !== 'flatten_debezium') return;
  const kind = config['table.topic.convert.value.type'];
  if (kind !== 'string' && kind !== 'raw') return;
  throw new FloeError(
    'invalid',
    `table.topic.transform.value.type: flatten_debezium reads envelopes, and table.topic.convert.value.type is ${kind}: set that to by_schema_id or json`,
  );
}

/** What an upsert table needs to tell its rows apart. */
function refuseUpsert(config: TopicConfigs): void {
  const name = 'table.topic.upsert.enable';
  if (!config[name]) return;
  if (config['table.topic.shared']) {
    const text = `${name}: topics that share a table append to it, since the newest change of a key is known for one topic only: set table.topic.shared=false, or route the topics into one`;
    throw new FloeError('unsupported', text);
  }
  if (config['table.topic.id.columns'].length > 0) return;
  const key = config['table.topic.convert.key.type'];
  if (!config['table.topic.system.columns'].includes('key')) {
    throw new FloeError(
      'invalid',
      `${name}: without table.topic.id.columns the record key makes the row, and table.topic.system.columns leaves it out: add key, or name id columns`,
    );
  }
  const framed = config['table.topic.convert.value.type'] === 'by_schema_id';
  if (
    framed &&
    key === 'raw' &&
    config['table.topic.transform.value.type'] === 'flatten_debezium'
  ) {
    throw new FloeError(
      'invalid',
      `${name}: Debezium’s keys carry schema ids, which change: set table.topic.convert.key.type=by_schema_id, or table.topic.id.columns`,
    );
  }
}

/** A format version is for ever, and some types need a newer one. `before`: the topic's config as it is. */
function refuseVersion(
  config: TopicConfigs,
  before: Readonly<Record<string, string>> | undefined,
): void {
  const name = 'table.topic.format.version';
  const version = config[name];
  const present =
    before === undefined || !isEnabled(before) ? version : resolveTopicConfigs(before)[name];
  if (present > version) {
    throw new FloeError(
      'invalid',
      `${name}: the table has format version ${present} and can't go back to ${version}: use another table.topic.name`,
    );
  }
  if (config['table.topic.types.nanos'] && version < 3) {
    throw new FloeError('invalid', `table.topic.types.nanos: nanosecond timestamps need ${name}=3`);
  }
}

/** Configs that speak of the table: topics that share one must agree on them. */
const SHARED_ALIKE = [
  'table.topic.partition.by',
  'table.topic.sort.by',
  'table.topic.format.version',
] as const;

/**
 * Two topics share a table only when both say so, and never one's dead letters the other's rows; engines fold case, so
 * it doesn't count.
 */
function refuseClash(directory: TopicDirectory, topicName: string, config: TopicConfigs): void {
  const own = tableNames(topicName, config);
  for (const other of directory.all()) {
    if (other.name === topicName || !isEnabled(other.config)) continue;
    const others = resolveTopicConfigs(other.config);
    const taken = tableNames(other.name, others);
    const clash = own.find((name) => taken.includes(name));
    if (clash === undefined) continue;
    const both = config['table.topic.shared'] && others['table.topic.shared'];
    if (both && own[0] === taken[0]) refuseDisagreement(other.name, config, others);
    else {
      throw new FloeError(
        'invalid',
        `table.topic.name: table ${clash} belongs to topic "${other.name}": choose another table.topic.name or table.topic.namespace, or set table.topic.shared=true on both`,
      );
    }
  }
}

function refuseDisagreement(otherName: string, config: TopicConfigs, others: TopicConfigs): void {
  for (const name of SHARED_ALIKE) {
    if (JSON.stringify(config[name]) === JSON.stringify(others[name])) continue;
    throw new FloeError(
      'invalid',
      `${name}: topic "${otherName}" fills the same table and has another value: topics that share a table agree on it`,
    );
  }
}

/** Dead letters go into no topic that the client couldn't write into itself, and not into their own. */
function refuseLetterTopic(
  directory: TopicDirectory,
  asked: {
    readonly topicName: string;
    readonly config: TopicConfigs;
    readonly mayWrite: (topicName: string) => boolean;
  },
): void {
  const { topicName, config, mayWrite } = asked;
  if (config['table.topic.errors.tolerance'] !== 'dlq_topic') return;
  const name = letterTopicName(topicName, config);
  const setting = 'table.topic.errors.dlq.topic';
  if (name === topicName) {
    throw new FloeError('invalid', `${setting}: dead letters of "${name}" can't go to itself`);
  }
  if (name.length > 249) {
    const remedy = `set ${setting} to a shorter one`;
    throw new FloeError(
      'invalid',
      `${setting}: "${name}" is longer than 249 characters: ${remedy}`,
    );
  }
  const own = config[setting] === '' && directory.byName(name) === undefined;
  if (!own && !mayWrite(name)) {
    throw new FloeError('invalid', `${setting}: writing into topic "${name}" is not allowed`);
  }
}

function tableNames(topicName: string, config: TopicConfigs): string[] {
  const { namespace, name } = tableIdentifier(topicName, config);
  const full = [...namespace, name].join('.').toLowerCase();
  return [full, `${full}_dlq`];
}

async function refuseMissingConverter(
  schemas: SchemaSource,
  topicName: string,
  config: Readonly<Record<string, string>>,
): Promise<void> {
  const name = 'table.topic.convert.value.type';
  if (config[name] !== undefined || config[`automq.${name}`] !== undefined) return;
  if (await isRegistered(schemas, `${topicName}-value`)) return;
  throw new FloeError(
    'invalid',
    `${name}: subject "${topicName}-value" is not registered, so the converter must be chosen: by_schema_id, json, string or raw`,
  );
}

/** Columns and transforms of `partition.by` and `sort.by`, when the columns are known already. */
async function checkLayout(
  schemas: SchemaSource,
  topicName: string,
  config: TopicConfigs,
): Promise<void> {
  const expressions = config['table.topic.partition.by'];
  const sorted = config['table.topic.sort.by'];
  if (expressions.length + sorted.length === 0) return;
  const value = await knownColumns(schemas, topicName, config);
  if (value === undefined) return;
  const key = config['table.topic.convert.key.type'] === 'raw' ? 'binary' : 'string';
  const system = systemFields(wantedSystemColumns(config), key);
  const { schema } = evolve({
    schema: { type: 'struct', 'schema-id': 0, fields: [] },
    lastColumnId: 0,
    fields: new Map(),
    proposed: { type: 'struct', fields: [...value.fields, ...system] },
    newColumns: true,
    mayRename: false,
  });
  buildPartitionFields(expressions, schema);
  buildSortFields(sorted, schema);
}

async function knownColumns(
  schemas: SchemaSource,
  topicName: string,
  config: TopicConfigs,
): Promise<ProposedStruct | undefined> {
  const whole = config['table.topic.transform.value.type'] === 'none';
  switch (config['table.topic.convert.value.type']) {
    case 'raw':
      return wholeValue('binary');
    case 'string':
      return wholeValue('string');
    case 'json':
      return whole ? wholeValue('string') : undefined;
    case 'by_schema_id':
    case 'by_latest_schema': {
      const columns = await newestColumns(schemas, { topicName, config });
      return columns === undefined ? undefined : selectColumns(columns, columnSelection(config));
    }
  }
}

async function isRegistered(schemas: SchemaSource, subject: string): Promise<boolean> {
  try {
    await schemas.latest(subject);
    return true;
  } catch (caught) {
    if (isFloeError(caught, 'not-found')) return false;
    throw caught;
  }
}

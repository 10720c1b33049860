// Configs that say which table a topic fills. Not for: whether the name is free (validate.ts).
import { FloeError } from '../../base/error.ts';
import { bool, type Settings, text, type Values } from '../../base/settings.ts';

/** Letters and digits of any script, marks, `_`, `-`; and places for the topic's name. */
const PART = '(?:[\\p{L}\\p{M}\\p{N}_-]|\\$\\{topic(?:\\[-?\\d{1,3}\\])?\\})';
/** Leaves room for `_dlq` in 255. */
const MAX_NAME = 251;
const MAX_LEVEL = 128;

export const configs = {
  'table.topic.namespace': text({
    default: 'kafka',
    aliases: ['automq.table.topic.namespace'],
    pattern: new RegExp(`^${PART}{1,${MAX_LEVEL}}(\\.${PART}{1,${MAX_LEVEL}}){0,7}$`, 'u'),
    wanted: 'a namespace: letters, digits, _ and -, levels parted by dots',
    doc: `Namespace of the table; created when missing. \${topic} stands for the topic’s name, \${topic[0]} for its first part between dots, \${topic[-1]} for its last.`,
  }),
  'table.topic.name': text({
    default: '',
    pattern: new RegExp(`^${PART}{0,${MAX_NAME}}$`, 'u'),
    wanted: 'a table name: letters, digits, _ and -',
    doc: `Name of the table, in any script, with \${topic} and its parts as in table.topic.namespace. Empty: the topic’s, every other character than letters, digits and _ becoming _. A name taken by another topic is refused, letter case aside, unless both share it.`,
  }),
  'table.topic.shared': bool({
    default: false,
    doc: 'Lets several topics fill one table: all of them set it and name the same table. Rows carry _kafka_topic; fields of the same name share a column where their types allow, else a further column is made. Not with upserts: which change of a key is the newest can only be kept for one topic.',
  }),
} as const satisfies Settings;

type NamingConfigs = Pick<Values<typeof configs>, 'table.topic.namespace' | 'table.topic.name'>;

/**
 * The table a topic's config names.
 * @throws FloeError `invalid` when the topic's name has no such part, or the name grows too long.
 */
export function tableIdentifier(
  topicName: string,
  config: NamingConfigs,
): { readonly namespace: readonly string[]; readonly name: string } {
  const configured = config['table.topic.name'];
  const namespace = config['table.topic.namespace']
    .split('.')
    .map((level) => fill('table.topic.namespace', level, topicName));
  const name =
    configured === '' ? plain(topicName) : fill('table.topic.name', configured, topicName);
  const long = [name.slice(MAX_NAME), ...namespace.map((level) => level.slice(MAX_LEVEL))].join('');
  if (long !== '') {
    throw new FloeError(
      'invalid',
      `table.topic.name: ${[...namespace, name].join('.')} is too long: ${MAX_LEVEL} characters a level and ${MAX_NAME} for the table`,
    );
  }
  return { namespace, name };
}

const plain = (topicName: string) => topicName.replaceAll(/[^A-Za-z0-9_]/g, '_');

function fill(setting: string, template: string, topicName: string): string {
  return template.replaceAll(/\$\{topic(?:\[(-?\d+)\])?\}/g, (_, index: string | undefined) => {
    if (index === undefined) return plain(topicName);
    const part = topicName.split('.').at(Number(index));
    if (part !== undefined && part !== '') return plain(part);
    throw new FloeError(
      'invalid',
      `${setting}: topic "${topicName}" has no part ${index} between dots`,
    );
  });
}

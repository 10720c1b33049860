// Configs that say which table a topic fills. Not for: whether the name is free (validate.ts).
import { type Settings, text, type Values } from '../../base/settings.ts';

export const configs = {
  'table.topic.namespace': text({
    default: 'kafka',
    aliases: ['automq.table.topic.namespace'],
    pattern: /^[A-Za-z0-9_]{1,128}(\.[A-Za-z0-9_]{1,128}){0,7}$/,
    wanted: 'a namespace: letters, digits and _, levels parted by dots',
    doc: 'Namespace of the table; created when missing.',
  }),
  'table.topic.name': text({
    default: '',
    pattern: /^[A-Za-z0-9_]{0,255}$/,
    wanted: 'a table name: letters, digits and _',
    doc: 'Name of the table. Empty: the topic’s, every other character than letters, digits and _ becoming _. A name taken by another topic is refused.',
  }),
} as const satisfies Settings;

/** The table a topic's config names. */
export function tableIdentifier(
  topicName: string,
  config: Values<typeof configs>,
): { readonly namespace: readonly string[]; readonly name: string } {
  const configured = config['table.topic.name'];
  return {
    namespace: config['table.topic.namespace'].split('.'),
    name: configured === '' ? topicName.replaceAll(/[^A-Za-z0-9_]/g, '_') : configured,
  };
}

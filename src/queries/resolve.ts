// Which table a name in a query means: a topic's table by the topic's name, a table of the default namespace, or
// `namespace.table`. SQL names ignore case; an exact match goes first.
import { FloeError } from '../base/error.ts';
import type { TableIdentifier } from '../catalog/catalog.ts';
import type { TableReference } from './statement.ts';

export interface TableDirectory {
  /** The table of a topic, if it is a table topic. */
  ofTopic(topic: string): TableIdentifier | undefined;
  exists(identifier: TableIdentifier): Promise<boolean>;
  /** All tables that may be queried. */
  names(): Promise<readonly TableIdentifier[]>;
}

/** @throws FloeError `invalid` when the name fits several tables. */
export async function resolveTable(
  { schema, table }: TableReference,
  directory: TableDirectory,
  defaultNamespace: string,
): Promise<TableIdentifier | undefined> {
  const full = schema === '' ? table : `${schema}.${table}`;
  for (const candidate of candidates(schema, table, defaultNamespace, directory.ofTopic(full)))
    if (await directory.exists(candidate)) return candidate;
  return anyCase(full, schema, defaultNamespace, await directory.names());
}

function candidates(
  schema: string,
  table: string,
  defaultNamespace: string,
  ofTopic: TableIdentifier | undefined,
): TableIdentifier[] {
  const own = ofTopic === undefined ? [] : [ofTopic];
  if (schema !== '') {
    const levels = schema.split('.');
    return [
      { namespace: [schema], name: table },
      ...(levels.length > 1 ? [{ namespace: levels, name: table }] : []),
      ...own,
    ];
  }
  const namespace = defaultNamespace.split('.');
  // A topic's table is called by the topic's name with other characters than letters, digits and _ replaced.
  const plain = table.replaceAll(/[^A-Za-z0-9_]/g, '_');
  return [
    ...own,
    { namespace, name: table },
    ...(plain === table ? [] : [{ namespace, name: plain }]),
  ];
}

function anyCase(
  full: string,
  schema: string,
  defaultNamespace: string,
  names: readonly TableIdentifier[],
): TableIdentifier | undefined {
  const wanted = full.toLowerCase();
  const shown = ({ namespace, name }: TableIdentifier) => [...namespace, name].join('.');
  const matches = names.filter((one) =>
    schema === '' ? one.name.toLowerCase() === wanted : shown(one).toLowerCase() === wanted,
  );
  const preferred = matches.filter((one) => one.namespace.join('.') === defaultNamespace);
  const chosen = preferred.length > 0 ? preferred : matches;
  if (chosen.length > 1) {
    throw new FloeError(
      'invalid',
      `"${full}" may be ${chosen.slice(0, 5).map(shown).join(' or ')}: name it with its namespace, exactly as it is written`,
    );
  }
  return chosen[0];
}

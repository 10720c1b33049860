// What Glue and Athena can't take, told when a topic is configured instead of at its first commit.
// Source: AWS Glue API reference (Database, Table, Column); Athena's naming rules; Iceberg's Glue catalog.
import { FloeError } from '../../base/error.ts';
import type { ProposedTable, TableIdentifier } from '../catalog.ts';
import { shownTable } from '../names.ts';

const DATABASE = /^[a-z0-9_]{1,252}$/;
/** Room is left for `_dlq`, whose table has the same rules. */
const TABLE = /^[a-z0-9_]{1,251}$/;

/** @throws FloeError `invalid` naming what is wrong and the config that changes it. */
export function checkGlueTable({ identifier, partitionSources }: ProposedTable): void {
  databaseOf(identifier.namespace);
  if (!TABLE.test(identifier.name)) {
    throw new FloeError(
      'invalid',
      `AWS Glue can't name a table "${identifier.name}": 1 to 251 lower-case letters, digits and _ (table.topic.name)`,
    );
  }
  const nested = partitionSources.find((source) => source.includes('.'));
  if (nested !== undefined) {
    throw new FloeError(
      'invalid',
      `${shownTable(identifier)}: AWS Glue can't partition by the nested field "${nested}": use a column at the top level (table.topic.partition.by)`,
    );
  }
}

/** The Glue database of a namespace. @throws FloeError `invalid`. */
export function databaseOf(namespace: readonly string[]): string {
  const [name = '', ...more] = namespace;
  if (more.length === 0 && DATABASE.test(name)) return name;
  throw new FloeError(
    'invalid',
    `AWS Glue can't name a database "${namespace.join('.')}": one level of 1 to 252 lower-case letters, digits and _ (table.topic.namespace)`,
  );
}

/** Glue's name of a table. @throws FloeError `invalid`. */
export function glueName({ namespace, name }: TableIdentifier) {
  if (!/^[a-z0-9_]{1,255}$/.test(name))
    checkGlueTable({ identifier: { namespace, name }, partitionSources: [] });
  return { DatabaseName: databaseOf(namespace), Name: name };
}

// Which table of the catalog is a topic's: its own, one that it joins, takes over from a deleted namesake or adopts; what
// is somebody else's is refused with the setting that would change that.
// Not for: creating it (binding.ts), the table of dead letters (dead-letter-binding.ts).
import type { Catalog, LoadedTable, TableIdentifier } from '../catalog/catalog.ts';
import { currentSchema, mappingOfTable, NAME_MAPPING } from '../formats/iceberg/index.ts';
import { claimTable, findTable } from './catalog-table.ts';
import type { TopicConfigs } from './settings/index.ts';
import { isShared, type TableOwner } from './table-owner.ts';
import { lost, tableText, trouble } from './trouble.ts';

/** A topic's table, as its configs want it. */
export interface TablePlace {
  readonly owner: TableOwner;
  readonly identifier: TableIdentifier;
  readonly config: TopicConfigs & { readonly properties: Readonly<Record<string, string>> };
  /** Known from before; empty when the table was never seen. */
  readonly tableUuid: string;
}

/**
 * The topic's table, claimed when it is to be taken over.
 * @returns undefined: there is none, or none any more, and it may be created.
 * @throws FloeError with `details.trouble` when somebody has to decide.
 */
export async function ownTable(
  catalog: Catalog,
  place: TablePlace,
): Promise<LoadedTable | undefined> {
  const { identifier, owner, config, tableUuid } = place;
  const found = await findTable(catalog, identifier, owner);
  if (found.kind === 'missing') return undefined;
  const { table } = found;
  if (tableUuid !== '' && table.metadata['table-uuid'] !== tableUuid) {
    throw lost(
      `${tableText(identifier)} was replaced by another table: resume with policy "restart" to fill it from the start`,
    );
  }
  if (found.kind === 'own') {
    const joins = owner.shared && !isShared(table.metadata.properties ?? {});
    return joins ? claimTable(catalog, table, owner) : table;
  }
  if (found.kind === 'joinable') {
    if (owner.shared) return claimTable(catalog, table, owner);
    throw trouble(
      `${tableText(identifier)} is shared by other topics: set table.topic.shared=true to fill it too, or table.topic.name to another one`,
    );
  }
  if (found.kind === 'recreated') {
    switch (config['table.topic.recreated']) {
      case 'append':
        return claimTable(catalog, table, owner);
      case 'replace':
        if (isShared(table.metadata.properties ?? {})) {
          throw trouble(
            `${tableText(identifier)} holds rows of other topics too: table.topic.recreated=replace would drop them, set it to append`,
          );
        }
        // The topic it was filled from is gone, and so are its rows: nobody else would delete the files.
        await catalog.dropTable(identifier, { purge: true });
        return undefined;
      case 'suspend':
        throw trouble(
          `${tableText(identifier)} holds the rows of a deleted topic of the same name (id ${found.formerTopicId}): set table.topic.recreated to append or replace`,
        );
    }
  }
  if (!config['table.topic.adopt']) {
    throw trouble(
      `${tableText(identifier)} exists and isn't this topic's: set table.topic.name to another one, or table.topic.adopt=true to write into it`,
    );
  }
  return adopt(catalog, table, owner);
}

async function adopt(
  catalog: Catalog,
  table: LoadedTable,
  owner: TableOwner,
): Promise<LoadedTable> {
  const required = currentSchema(table.metadata).fields.filter((field) => field.required);
  if (required.length > 0) {
    const names = required.map((field) => field.name).join(', ');
    throw trouble(
      `${tableText(table.identifier)} can't be adopted: its columns ${names} are required and a topic may leave any column empty`,
    );
  }
  // Files without field ids may be in it: whatever its columns are called later, they are found by the names of now.
  const { properties } = table.metadata;
  const mapping = properties?.[NAME_MAPPING] ?? JSON.stringify(mappingOfTable(table.metadata));
  return claimTable(catalog, table, owner, { [NAME_MAPPING]: mapping });
}

/** The table was there and is missing. */
export const dropped = (identifier: TableIdentifier) =>
  lost(
    `${tableText(identifier)} was dropped: resume with policy "restart" to create and fill it again`,
  );

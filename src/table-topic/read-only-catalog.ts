// The catalog as nodes see it that don't coordinate a table: they read it, and what would change a table is refused, so
// that the very code which changes tables elsewhere says here that a change is needed (rule T10).
import { FloeError, isFloeError } from '../base/error.ts';
import type { Catalog } from '../catalog/catalog.ts';

/** Thrown by what would write. */
const refusal = () =>
  new FloeError('unsupported', 'T10: only the coordinator of a table changes it', {
    details: { onlyCoordinator: true },
  });

/** True for what a {@link readOnlyCatalog} refuses. */
export const needsCoordinator = (caught: unknown): boolean =>
  isFloeError(caught, 'unsupported') && caught.details['onlyCoordinator'] === true;

async function refuse(): Promise<never> {
  throw refusal();
}

export function readOnlyCatalog(catalog: Catalog): Catalog {
  return {
    ensureNamespace: refuse,
    createTable: refuse,
    commitTable: refuse,
    dropTable: refuse,
    listNamespaces: (parent) => catalog.listNamespaces(parent),
    listTables: (namespace) => catalog.listTables(namespace),
    loadTable: (identifier) => catalog.loadTable(identifier),
    tableExists: (identifier) => catalog.tableExists(identifier),
    checkTable: (...table) => catalog.checkTable(...table),
  };
}

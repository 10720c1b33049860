// The conditions of a commit: each must hold for the table as it is, or the commit fails as a conflict.
// Source: Iceberg REST catalog OpenAPI, TableRequirement.
import { FloeError } from '../../base/error.ts';
import { asInt, asSnapshotId, asText, type Json } from './shapes.ts';
import type { TableMetadata } from './types.ts';

type Check = (requirement: Json, metadata: TableMetadata) => void;

/** The first words are those that clients know from other catalogs. */
function failed(what: string, wanted: unknown, got: unknown): FloeError {
  return new FloeError(
    'conflict',
    `Requirement failed: ${what}: expected ${String(wanted ?? 'none')}, is ${String(got ?? 'missing')} (reload the table and decide afresh)`,
  );
}

/** A requirement that one number of the metadata has a value. */
const numberIs =
  (property: string, key: keyof TableMetadata, what: string): Check =>
  (requirement, metadata) => {
    const wanted = asInt(requirement[property], property);
    if (metadata[key] !== wanted) throw failed(`${what} changed`, wanted, metadata[key]);
  };

const CHECKS: Readonly<Record<string, Check>> = {
  'assert-table-uuid': (requirement, metadata) => {
    const wanted = asText(requirement['uuid'], 'uuid');
    if (metadata['table-uuid'].toLowerCase() !== wanted.toLowerCase())
      throw failed('UUID does not match', wanted, metadata['table-uuid']);
  },
  'assert-ref-snapshot-id': (requirement, metadata) => {
    const ref = asText(requirement['ref'], 'ref');
    const id = requirement['snapshot-id'];
    const wanted = id === null || id === undefined ? undefined : asSnapshotId(id, 'snapshot-id');
    const present = Object.hasOwn(metadata.refs ?? {}, ref) ? metadata.refs?.[ref] : undefined;
    const got = present?.['snapshot-id'];
    if (got !== wanted)
      throw failed(`${present?.type ?? 'branch or tag'} ${ref} has changed`, wanted, got);
  },
  'assert-last-assigned-field-id': numberIs(
    'last-assigned-field-id',
    'last-column-id',
    'last assigned field id',
  ),
  'assert-current-schema-id': numberIs('current-schema-id', 'current-schema-id', 'current schema'),
  'assert-last-assigned-partition-id': numberIs(
    'last-assigned-partition-id',
    'last-partition-id',
    'last assigned partition id',
  ),
  'assert-default-spec-id': numberIs(
    'default-spec-id',
    'default-spec-id',
    'default partition spec',
  ),
  'assert-default-sort-order-id': numberIs(
    'default-sort-order-id',
    'default-sort-order-id',
    'default sort order',
  ),
};

/**
 * @param metadata the table; undefined when there is none (only `assert-create` can hold then).
 * @throws FloeError `conflict` for one that doesn't hold, `invalid` for an unknown one, `not-found` without a table.
 */
export function checkRequirements(
  metadata: TableMetadata | undefined,
  requirements: readonly Json[],
): void {
  for (const requirement of requirements) {
    const type = asText(requirement['type'], 'type of a requirement');
    if (type === 'assert-create') {
      if (metadata !== undefined)
        throw new FloeError('conflict', 'Requirement failed: table already exists');
      continue;
    }
    if (!Object.hasOwn(CHECKS, type))
      throw new FloeError('invalid', `unknown requirement "${type}"`);
    if (metadata === undefined) throw new FloeError('not-found', 'the table does not exist');
    CHECKS[type]!(requirement, metadata);
  }
}

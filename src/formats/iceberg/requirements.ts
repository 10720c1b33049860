// The conditions of a commit: each must hold for the table as it is, or the commit fails as a conflict.
// Source: Iceberg REST catalog OpenAPI, TableRequirement.
import { FloeError } from '../../base/error.ts';
import { asInt, asSnapshotId, asText, type Json } from './shapes.ts';
import type { TableMetadata } from './types.ts';

type Check = (requirement: Json, metadata: TableMetadata) => void;

function failed(what: string, wanted: unknown, got: unknown): FloeError {
  return new FloeError(
    'conflict',
    `Requirement failed: ${what} is ${String(got ?? 'missing')}, expected ${String(wanted ?? 'none')}: reload the table and decide afresh`,
  );
}

/** A requirement that one number of the metadata has a value. */
const numberIs =
  (name: string, key: keyof TableMetadata, property: string = name): Check =>
  (requirement, metadata) => {
    const wanted = asInt(requirement[property], property);
    if (metadata[key] !== wanted) throw failed(name.replaceAll('-', ' '), wanted, metadata[key]);
  };

const CHECKS: Readonly<Record<string, Check>> = {
  'assert-table-uuid': (requirement, metadata) => {
    const wanted = asText(requirement['uuid'], 'uuid');
    if (metadata['table-uuid'].toLowerCase() !== wanted.toLowerCase())
      throw failed('table uuid', wanted, metadata['table-uuid']);
  },
  'assert-ref-snapshot-id': (requirement, metadata) => {
    const ref = asText(requirement['ref'], 'ref');
    const id = requirement['snapshot-id'];
    const wanted = id === null || id === undefined ? undefined : asSnapshotId(id, 'snapshot-id');
    const got = Object.hasOwn(metadata.refs ?? {}, ref)
      ? metadata.refs?.[ref]?.['snapshot-id']
      : undefined;
    if (got !== wanted) throw failed(`ref "${ref}"`, wanted, got);
  },
  'assert-last-assigned-field-id': numberIs('last-assigned-field-id', 'last-column-id'),
  'assert-current-schema-id': numberIs('current-schema-id', 'current-schema-id'),
  'assert-last-assigned-partition-id': numberIs('last-assigned-partition-id', 'last-partition-id'),
  'assert-default-spec-id': numberIs('default-spec-id', 'default-spec-id'),
  'assert-default-sort-order-id': numberIs('default-sort-order-id', 'default-sort-order-id'),
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
        throw new FloeError('conflict', 'Requirement failed: the table exists already');
      continue;
    }
    if (!Object.hasOwn(CHECKS, type))
      throw new FloeError('invalid', `unknown requirement "${type}"`);
    if (metadata === undefined) throw new FloeError('not-found', 'the table does not exist');
    CHECKS[type]!(requirement, metadata);
  }
}

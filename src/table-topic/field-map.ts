// The field map of a table (evolve.ts) as its property: the table alone says which column a source field owns.
import { FloeError } from '../base/error.ts';
import { parseIcebergJson } from '../formats/iceberg/json.ts';
import type { TableMetadata } from '../formats/iceberg/types.ts';
import type { FieldMap } from './evolve.ts';

/** The table property that holds the field map. */
export const FIELDS_PROPERTY = 'floe.fields';

export function formatFieldMap(fields: FieldMap): string {
  return JSON.stringify(Object.fromEntries(fields));
}

/** The field map of a table; empty when it has none (an adopted one). @throws FloeError `corrupt`. */
export function fieldMapOf(metadata: TableMetadata): FieldMap {
  const text = metadata.properties?.[FIELDS_PROPERTY];
  if (text === undefined) return NO_FIELDS;
  try {
    const parsed = parseIcebergJson(text) as Record<string, number>;
    return new Map(Object.entries(parsed).map(([path, id]) => [path, Number(id)]));
  } catch (caught) {
    throw new FloeError('corrupt', `table property ${FIELDS_PROPERTY} is unreadable`, {
      cause: caught,
    });
  }
}

const NO_FIELDS: FieldMap = new Map();

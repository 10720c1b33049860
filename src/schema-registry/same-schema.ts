// Whether a schema that a client sends is a registered one though it isn't written the same: references inlined, or
// without the version that its metadata carries.
import type { SchemaRow } from '../metadata/registry.ts';
import type { PreparedSchema, SchemaContents } from './content.ts';
import { sameContract } from './contract.ts';

/** Compares beyond the guid. Resolves the row's references only where the schema came without any. */
export async function sameSchema(
  contents: SchemaContents,
  { content, format, parsed }: PreparedSchema,
  row: SchemaRow,
): Promise<boolean> {
  if (row.type !== content.type || !sameContract(row.contract, content.contract)) return false;
  const sameReferences = JSON.stringify(row.references) === JSON.stringify(content.references);
  if (sameReferences) return row.schema === content.schema;
  if (content.references.length > 0 || row.references.length === 0) return false;
  const standalone = format.formatted(parsed, 'resolved');
  return standalone !== undefined && standalone === (await contents.formatted(row, 'resolved'));
}

// For tests and benchmarks only: gives field ids to a proposed schema, as a table's coordinator would.
// Not for: evolution with its rules (table-topic/).
import type { IcebergType, NestedField, Schema } from '../iceberg/types.ts';
import type { Bindings, ProposedField, ProposedStruct, ProposedType } from './proposed-schema.ts';

export interface CommittedForTest {
  readonly schema: Schema;
  readonly bindings: Bindings;
  /** Source path → name and type, as `JsonInference.proposed` takes it. */
  readonly committed: ReadonlyMap<string, { readonly name: string; readonly type: IcebergType }>;
}

/** Commits `proposed` on top of `previous`: paths known there keep their ids, nothing is dropped. */
export function commitForTest(
  proposed: ProposedStruct,
  previous?: CommittedForTest,
): CommittedForTest {
  const bindings = new Map(previous?.bindings ?? []);
  const committed = new Map(previous?.committed ?? []);
  let lastId = Math.max(0, ...bindings.values());
  const idOf = (path: string) => {
    const id = bindings.get(path) ?? ++lastId;
    bindings.set(path, id);
    return id;
  };

  function typeOf(type: ProposedType, before: IcebergType | undefined): IcebergType {
    if (typeof type === 'string') return type;
    if (type.type === 'struct') {
      const old = typeof before === 'object' && before.type === 'struct' ? before.fields : [];
      return { type: 'struct', fields: fieldsOf(type.fields, old) };
    }
    if (type.type === 'list') {
      const id = idOf(type.elementPath);
      const old = typeof before === 'object' && before.type === 'list' ? before.element : undefined;
      const element = typeOf(type.element, old);
      committed.set(type.elementPath, { name: 'element', type: element });
      return { type: 'list', 'element-id': id, 'element-required': false, element };
    }
    const keyId = idOf(type.keyPath);
    const valueId = idOf(type.valuePath);
    const old = typeof before === 'object' && before.type === 'map' ? before.value : undefined;
    const value = typeOf(type.value, old);
    return {
      type: 'map',
      'key-id': keyId,
      key: type.key as IcebergType,
      'value-id': valueId,
      'value-required': false,
      value,
    };
  }

  function fieldsOf(
    fields: readonly ProposedField[],
    before: readonly NestedField[],
  ): NestedField[] {
    const result = new Map(before.map((field) => [field.id, field]));
    for (const field of fields) {
      const id = idOf(field.path);
      const type = typeOf(field.type, result.get(id)?.type);
      committed.set(field.path, { name: field.name, type });
      result.set(id, { id, name: field.name, required: false, type });
    }
    return [...result.values()];
  }

  const fields = fieldsOf(proposed.fields, previous?.schema.fields ?? []);
  const schemaId = previous === undefined ? 0 : previous.schema['schema-id'] + 1;
  return { schema: { type: 'struct', 'schema-id': schemaId, fields }, bindings, committed };
}

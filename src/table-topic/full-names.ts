// Full names (`a.b` is field b of struct a) must be unique in a table, yet a field may itself be called "a.b". A new
// column whose full name is taken gets `_2`, `_3`, … appended to its own name; columns that are there keep theirs.
import { walkFields } from '../formats/iceberg/schema.ts';
import type { IcebergType, NestedField } from '../formats/iceberg/types.ts';

/** `fields` with distinct full names; the very array when they are. Ids above `lastColumnId` are new. */
export function distinctFullNames(
  fields: readonly NestedField[],
  lastColumnId: number,
): readonly NestedField[] {
  const names = new Set<string>();
  const taken = new Set<string>();
  let clashes = false;
  for (const { id, fullName } of walkFields({ type: 'struct', fields })) {
    clashes ||= names.has(fullName);
    names.add(fullName);
    if (id <= lastColumnId) taken.add(fullName);
  }
  if (!clashes) return fields;
  return renamed(fields, '', { taken, lastColumnId });
}

interface Naming {
  readonly taken: Set<string>;
  readonly lastColumnId: number;
}

function renamed(fields: readonly NestedField[], parent: string, naming: Naming): NestedField[] {
  return fields.map((field) => {
    const { taken, lastColumnId } = naming;
    let { name } = field;
    if (field.id > lastColumnId) {
      const siblings = new Set(
        fields.filter(({ id }) => id !== field.id).map((one) => one.name.toLowerCase()),
      );
      const isTaken = () => taken.has(parent + name) || siblings.has(name.toLowerCase());
      for (let n = 2; isTaken(); n += 1) name = `${field.name}_${n}`;
      taken.add(parent + name);
    }
    return { ...field, name, type: within(field.type, `${parent}${name}.`, naming) };
  });
}

function within(type: IcebergType, prefix: string, naming: Naming): IcebergType {
  if (typeof type === 'string') return type;
  if (type.type === 'struct') return { ...type, fields: renamed(type.fields, prefix, naming) };
  if (type.type === 'list') {
    return { ...type, element: within(type.element, `${prefix}element.`, naming) };
  }
  return { ...type, value: within(type.value, `${prefix}value.`, naming) };
}

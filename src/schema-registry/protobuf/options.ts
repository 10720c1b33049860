// Options in normal form: extension names in full, paths as aggregates (`(a).b.c = 1` is `(a) = {b: {c: 1}}`), one
// option for a name unless it repeats, sorted by name.
import { findExtension, findType, type ProtoSchema } from './resolve.ts';
import {
  allFields,
  type OptionEntry,
  type OptionValue,
  type ProtoField,
  type ProtoOption,
} from './schema.ts';

/** The normal form of a list of options written inside `scope`. */
export function normalOptions(
  schema: ProtoSchema,
  options: readonly ProtoOption[],
  scope: string,
): readonly ProtoOption[] {
  const byName = new Map<string, ProtoOption[]>();
  for (const option of options) {
    const one = nested(schema, option, scope);
    byName.set(one.name, [...(byName.get(one.name) ?? []), one]);
  }
  const names = [...byName.keys()].sort();
  return names.flatMap((name) => {
    const list = byName.get(name)!;
    const field = schema.extensions.get(name.slice(1, -1));
    if (list.length === 1 || field === undefined || field.label === 'repeated') return list;
    const value = list.map((one) => one.value).reduce((a, b) => merge(schema, field, [a, b]));
    return [{ name, value }];
  });
}

/** An extension option with the rest of its path moved into the value. Others stay as they are. */
function nested(schema: ProtoSchema, { name, value }: ProtoOption, scope: string): ProtoOption {
  const parts = /^\(([^)]*)\)(?:\.(.+))?$/.exec(name);
  if (parts === null) return { name, value: sorted(value) };
  const extension = parts[1]!;
  const found = findExtension(schema, extension, scope);
  const path = parts[2]?.match(/\([^)]*\)|[^.]+/g) ?? [];
  const inner = path.reduceRight<OptionValue>(
    (rest, part) => ({ kind: 'message', fields: [[part.replace(/^\((.*)\)$/, '[$1]'), rest]] }),
    value,
  );
  return { name: `(${found?.[0] ?? extension})`, value: sorted(inner) };
}

/** Aggregates with their fields by name, lists of one as that one. */
function sorted(value: OptionValue): OptionValue {
  if (value.kind === 'list')
    return value.items.length === 1
      ? sorted(value.items[0]!)
      : { kind: 'list', items: value.items.map(sorted) };
  if (value.kind !== 'message') return value;
  const fields = value.fields.map(([name, one]) => [name, sorted(one)] as const);
  return { kind: 'message', fields: fields.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)) };
}

/** Later settings into earlier ones: fields of messages merge, repeated ones collect, others give way. */
function merge(
  schema: ProtoSchema,
  field: ProtoField | undefined,
  [before, after]: readonly [OptionValue, OptionValue],
): OptionValue {
  if (before.kind === 'message' && after.kind === 'message') {
    const fields = new Map<string, OptionValue>(before.fields);
    for (const [name, value] of after.fields) {
      const old = fields.get(name);
      const inner = fieldOf(schema, field, name);
      fields.set(name, old === undefined ? value : merge(schema, inner, [old, value]));
    }
    return sorted({ kind: 'message', fields: [...fields] satisfies readonly OptionEntry[] });
  }
  if (field !== undefined && field.label !== 'repeated') return after;
  return { kind: 'list', items: [...itemsOf(before), ...itemsOf(after)] };
}

const itemsOf = (value: OptionValue) => (value.kind === 'list' ? value.items : [value]);

function fieldOf(
  schema: ProtoSchema,
  owner: ProtoField | undefined,
  name: string,
): ProtoField | undefined {
  const found = owner === undefined ? undefined : findType(schema, owner.type, schema.file.package);
  if (found === undefined || found.type.kind === 'enum') return undefined;
  return allFields(found.type).find(({ field }) => field.name === name)?.field;
}

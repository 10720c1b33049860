// What a table becomes when a source would like columns: the columns to add, widen and rename, and which column
// each part of the source writes to. Pure; only the coordinator acts on it (rule T10).
//
// The *field map* (source path → field id) lives in a table property, so that the table alone says which column a
// source field owns, whatever the columns are called. A field that took a type Iceberg can't widen to owns a second
// entry, `path#type`. A mapped id that the schema lacks was dropped by somebody: such a field is skipped, never
// brought back. Columns are added optional and never dropped.
import type {
  ProposedField,
  ProposedStruct,
  ProposedType,
} from '../formats/arrow/proposed-schema.ts';
import { indexSchema, isPromotionAllowed } from '../formats/iceberg/schema.ts';
import type { IcebergType, NestedField, Schema } from '../formats/iceberg/types.ts';

/** Source path, or path and type, → field id. */
export type FieldMap = ReadonlyMap<string, number>;

export interface EvolveRequest {
  readonly schema: Schema;
  readonly lastColumnId: number;
  readonly fields: FieldMap;
  readonly proposed: ProposedStruct;
  /** False: an incompatible change is only reported in `conflicts`, and its field is bound to nothing. */
  readonly newColumns: boolean;
  /** Only the newest version of a source renames: an older one interleaved would rename back. */
  readonly mayRename: boolean;
  /** True: a column that was dropped comes back when the source still has it (JSON: a value must land somewhere). */
  readonly revive?: boolean;
}

/** A field whose type its column can't take. */
export interface TypeConflict {
  readonly path: string;
  readonly column: string;
  readonly columnType: string;
  readonly sourceType: string;
}

export interface Evolution {
  /** The very object that was given when nothing changes. */
  readonly schema: Schema;
  readonly lastColumnId: number;
  /** Likewise. */
  readonly fields: FieldMap;
  /** For the decoder of this source: its paths → field ids. */
  readonly bindings: ReadonlyMap<string, number>;
  readonly conflicts: readonly TypeConflict[];
}

export function evolve(request: EvolveRequest): Evolution {
  const run = new EvolutionRun(request);
  const fields = run.struct(request.schema.fields, request.proposed.fields, [[]]);
  return {
    schema: run.schemaChanged ? { ...request.schema, fields } : request.schema,
    lastColumnId: run.lastColumnId,
    fields: run.fieldsChanged ? run.fields : request.fields,
    bindings: run.bindings,
    conflicts: run.conflicts,
  };
}

/** Spellings of one place in the source: today's path first, then those by former names. */
type Spellings = readonly string[];

/** One evolution under way: counts ids, collects the bindings. Columns themselves are copied, never changed. */
class EvolutionRun {
  readonly #request: EvolveRequest;
  readonly bindings = new Map<string, number>();
  readonly conflicts: TypeConflict[] = [];
  readonly fields: Map<string, number>;
  readonly #owned: Set<number>;
  lastColumnId: number;
  schemaChanged = false;
  fieldsChanged = false;

  constructor(request: EvolveRequest) {
    this.#request = request;
    const present = request.revive === true ? indexSchema(request.schema).byId : undefined;
    this.fields = new Map(
      [...request.fields].filter(([, id]) => present === undefined || present.has(id)),
    );
    this.#owned = new Set(this.fields.values());
    this.lastColumnId = request.lastColumnId;
  }

  /** The columns of a struct once `proposed` has found or made its own. */
  struct(
    present: readonly NestedField[],
    proposed: readonly ProposedField[],
    parents: readonly Spellings[],
  ): NestedField[] {
    const columns = [...present];
    for (const field of proposed) this.#field(columns, field, spellings(field, parents));
    return columns;
  }

  #field(columns: NestedField[], field: ProposedField, paths: Spellings): void {
    const typed = `${field.path}#${typeName(field.type)}`;
    const known = this.#lookUp(paths);
    const index = known ?? this.#lookUp([typed]);
    if (index !== undefined && !columns.some((column) => column.id === index)) {
      // Mapped, and gone from the table: dropped on purpose. Unless the other type's column is still there.
      if (this.#use(columns, this.#lookUp([typed]), field, { key: typed, paths })) return;
      return;
    }
    if (this.#use(columns, known, field, { key: field.path, paths })) return;
    if (this.#use(columns, this.#lookUp([typed]), field, { key: typed, paths })) return;
    const namesake = columns.find((column) => column.name === field.name);
    const free = namesake !== undefined && !this.#owned.has(namesake.id) ? namesake.id : undefined;
    if (known === undefined && this.#use(columns, free, field, { key: field.path, paths })) return;
    const owner = columns.find((column) => column.id === known) ?? namesake;
    if (owner === undefined) this.#add(columns, field, { key: field.path, name: field.name });
    else this.#conflict(columns, field, { owner, typed });
  }

  #lookUp(paths: Spellings): number | undefined {
    for (const path of paths) {
      const id = this.fields.get(path);
      if (id !== undefined) return id;
    }
    return undefined;
  }

  /** Binds the field to column `id` when that can hold it, widened if need be. */
  #use(
    columns: NestedField[],
    id: number | undefined,
    field: ProposedField,
    { key, paths }: { readonly key: string; readonly paths: Spellings },
  ): boolean {
    const at = columns.findIndex((column) => column.id === id);
    const column = columns[at];
    if (column === undefined || !canHold(column.type, field.type)) return false;
    const type = this.#merge(column.type, field.type, paths);
    // A known field under a name that a former one owned, and a newer source says so: rename.
    const renamed = this.#request.mayRename && key === field.path && !this.fields.has(key);
    const name = renamed ? freeName(columns, field.name, column.id) : column.name;
    if (type !== column.type || name !== column.name) {
      columns[at] = { ...column, name, type };
      this.schemaChanged = true;
    }
    this.#bind(field.path, key, column.id);
    return true;
  }

  #conflict(
    columns: NestedField[],
    field: ProposedField,
    { owner, typed }: { readonly owner: NestedField; readonly typed: string },
  ): void {
    const suffix = typeName(field.type);
    this.conflicts.push({
      path: field.path,
      column: owner.name,
      columnType: typeName(owner.type),
      sourceType: suffix,
    });
    if (this.#request.newColumns) {
      this.#add(columns, field, { key: typed, name: `${field.name}__${suffix}` });
    }
  }

  #add(
    columns: NestedField[],
    field: ProposedField,
    { key, name }: { readonly key: string; readonly name: string },
  ): void {
    const id = this.#nextId();
    const column: NestedField = {
      id,
      name: freeName(columns, name, id),
      required: false,
      type: this.#fresh(field.type),
      ...(field.doc === undefined ? {} : { doc: field.doc }),
    };
    columns.push(column);
    this.schemaChanged = true;
    this.#bind(field.path, key, id);
  }

  #bind(path: string, key: string, id: number): void {
    this.bindings.set(path, id);
    this.#owned.add(id);
    if (this.fields.get(key) === id) return;
    this.fields.set(key, id);
    this.fieldsChanged = true;
  }

  #nextId(): number {
    this.lastColumnId += 1;
    return this.lastColumnId;
  }

  /** A type with ids of its own, everything in it bound. */
  #fresh(type: ProposedType): IcebergType {
    if (typeof type === 'string') return type;
    if (type.type === 'struct')
      return { type: 'struct', fields: this.struct([], type.fields, [[]]) };
    if (type.type === 'list') {
      const id = this.#nextId();
      this.#bind(type.elementPath, type.elementPath, id);
      return {
        type: 'list',
        'element-id': id,
        'element-required': false,
        element: this.#fresh(type.element),
      };
    }
    const keyId = this.#nextId();
    const valueId = this.#nextId();
    this.#bind(type.keyPath, type.keyPath, keyId);
    this.#bind(type.valuePath, type.valuePath, valueId);
    return {
      type: 'map',
      'key-id': keyId,
      key: this.#fresh(type.key),
      'value-id': valueId,
      'value-required': false,
      value: this.#fresh(type.value),
    };
  }

  /** `canHold` holds: the column's type, widened where the source is wider, nested columns found or made. */
  #merge(column: IcebergType, source: ProposedType, paths: Spellings): IcebergType {
    if (typeof column === 'string') {
      const wider = isPromotionAllowed(source as IcebergType, column);
      return wider ? column : (source as IcebergType);
    }
    if (typeof source === 'string') return column;
    if (column.type === 'struct' && source.type === 'struct') {
      const fields = this.struct(column.fields, source.fields, [paths]);
      const same = fields.every((field, i) => field === column.fields[i]);
      return same && fields.length === column.fields.length ? column : { type: 'struct', fields };
    }
    if (column.type === 'list' && source.type === 'list') {
      this.#bind(source.elementPath, source.elementPath, column['element-id']);
      const inner = paths.map((path) => `${path}[]`);
      const element = this.#merge(column.element, source.element, inner);
      return element === column.element ? column : { ...column, element };
    }
    if (column.type === 'map' && source.type === 'map') {
      this.#bind(source.keyPath, source.keyPath, column['key-id']);
      this.#bind(source.valuePath, source.valuePath, column['value-id']);
      const inner = paths.map((path) => `${path}{value}`);
      const value = this.#merge(column.value, source.value, inner);
      // A map's key never evolves: a changed key struct would make equal keys unequal.
      return value === column.value ? column : { ...column, value };
    }
    return column;
  }
}

/** Today's path, then every mix of former names of the field and of its parents. */
function spellings(field: ProposedField, parents: readonly Spellings[]): Spellings {
  const [own = []] = parents;
  if (own.length === 0 && field.aliases.length === 0) return [field.path];
  const last = /(?:[^\\.]|\\.)*$/.exec(field.path)![0];
  const names = [last, ...field.aliases.map((alias) => alias.replace(/[\\.[{]/g, '\\$&'))];
  const prefixes =
    own.length === 0
      ? [field.path.slice(0, field.path.length - last.length)]
      : own.map((p) => `${p}.`);
  const all = prefixes.flatMap((prefix) => names.map((name) => prefix + name));
  return [...new Set([field.path, ...all])];
}

/** Whether a column can take values of a source type, after a widening that Iceberg allows or as it is. */
function canHold(column: IcebergType, source: ProposedType): boolean {
  if (typeof column === 'string' || typeof source === 'string') {
    if (typeof column !== 'string' || typeof source !== 'string') return false;
    return isPromotionAllowed(source, column) || isPromotionAllowed(column, source);
  }
  if (column.type !== source.type) return false;
  if (column.type === 'list' && source.type === 'list')
    return canHold(column.element, source.element);
  if (column.type === 'map' && source.type === 'map') {
    return sameKey(column.key, source.key) && canHold(column.value, source.value);
  }
  // Fields of a struct find their own columns, conflicts included.
  return true;
}

const sameKey = (column: IcebergType, source: ProposedType) =>
  typeof column === 'string' && typeof source === 'string' && isPromotionAllowed(source, column);

/** A short word for a type, as the suffix of a further column: `string`, `decimal_10_2`, `list`. */
export function typeName(type: IcebergType | ProposedType): string {
  if (typeof type !== 'string') return type.type;
  return type.replaceAll(/[^A-Za-z0-9]+/g, '_').replace(/_$/, '');
}

/** `wanted`, or with `_2`, `_3`, … when another column has it, letter case aside (engines differ there). */
function freeName(columns: readonly NestedField[], wanted: string, id: number): string {
  const taken = new Set(
    columns.filter((column) => column.id !== id).map((column) => column.name.toLowerCase()),
  );
  let name = wanted;
  for (let n = 2; taken.has(name.toLowerCase()); n += 1) name = `${wanted}_${n}`;
  return name;
}

// What a table becomes when a source would like columns: the columns to add, widen and rename, and which column
// each part of the source writes to. Pure; only the coordinator acts on it (rule T10).
//
// The *field map* (source path → field id) lives in a table property, so that the table alone says which column a
// source field owns, whatever the columns are called. A field that took a type Iceberg can't widen to owns a further
// entry, `path\~type`, under which everything inside it is kept too. `path\=name` says by which of its names a column
// goes that was renamed, or whose path isn't a name (Protobuf). A mapped id that the schema lacks was dropped by
// somebody: such a field is skipped, never brought back. Columns are added optional and never dropped.
import { assert } from '../base/assert.ts';
import type {
  ProposedField,
  ProposedStruct,
  ProposedType,
} from '../formats/arrow/proposed-schema.ts';
import { fieldPath } from '../formats/arrow/proposed-schema.ts';
import { indexSchema, isPromotionAllowed } from '../formats/iceberg/schema.ts';
import type { IcebergType, NestedField, Schema } from '../formats/iceberg/types.ts';
import { distinctFullNames } from './full-names.ts';

/** Source path, path and type, or path and name, → field id. */
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
  const columns = run.struct(request.schema.fields, request.proposed.fields, ROOT);
  const fields = run.schemaChanged ? distinctFullNames(columns, request.lastColumnId) : columns;
  return {
    schema: run.schemaChanged ? { ...request.schema, fields } : request.schema,
    lastColumnId: run.lastColumnId,
    fields: run.fieldsChanged ? run.fields : request.fields,
    bindings: run.bindings,
    conflicts: run.conflicts,
  };
}

/**
 * Where a struct stands: what its parent's path is and was (only those under which the very column is known), and the
 * path under which the field map keeps it, which has the type in it below a column of a further type.
 */
interface Scope {
  readonly parents: readonly string[];
  /** Source path → key in the field map. */
  readonly key: (path: string) => string;
}

const ROOT: Scope = { parents: [''], key: (path) => path };

/** A field on its way to a column. */
interface Candidate {
  readonly field: ProposedField;
  readonly scope: Scope;
  /** Source paths that it may be known by: today's, then those of former names. */
  readonly paths: readonly string[];
  /** Last steps of the paths of all fields of its record. */
  readonly siblings: ReadonlySet<string>;
}

/** One evolution under way: counts ids, collects the bindings. Columns themselves are copied, never changed. */
class EvolutionRun {
  readonly #request: EvolveRequest;
  readonly bindings = new Map<string, number>();
  readonly conflicts: TypeConflict[] = [];
  readonly fields: Map<string, number>;
  readonly #owned: Set<number>;
  /** Columns that a field of this very source has: no other may write to them. */
  readonly #taken = new Set<number>();
  /** Field id → its entry `path\=name`. */
  readonly #markers = new Map<number, string>();
  /** Path → its entries `path\~type`. */
  readonly #further = new Map<string, string[]>();
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
    for (const [key, id] of this.fields) this.#index(key, id);
  }

  #index(key: string, id: number): void {
    if (MARKER.test(key)) this.#markers.set(id, key);
    const base = FURTHER.exec(key)?.[1];
    if (base === undefined) return;
    const known = this.#further.get(base) ?? [];
    if (!known.includes(key)) known.push(key);
    this.#further.set(base, known);
  }

  /** The columns of a struct once `proposed` has found or made its own. */
  struct(
    present: readonly NestedField[],
    proposed: readonly ProposedField[],
    scope: Scope,
  ): NestedField[] {
    const columns = [...present];
    const siblings = new Set(proposed.map((field) => lastStep(field.path)));
    for (const field of proposed) {
      this.#field(columns, { field, scope, siblings, paths: pathsOf(field, siblings, scope) });
    }
    return columns;
  }

  #field(columns: NestedField[], candidate: Candidate): void {
    const { field, scope } = candidate;
    const plain = scope.key(field.path);
    const known = this.#lookUp(candidate);
    const gone = known !== undefined && !columns.some((column) => column.id === known);
    if (this.#use(columns, known, { ...candidate, key: plain })) return;
    // Columns of further types: the one of this very type first, then what can be widened to it.
    const exact = `${plain}\\~${typeName(field.type)}`;
    const further = this.#further.get(plain) ?? [];
    for (const key of [exact, ...further.filter((one) => one !== exact)]) {
      if (this.#use(columns, this.fields.get(key), { ...candidate, key })) return;
    }
    // Mapped, and gone from the table: dropped on purpose.
    if (gone || columnIsGone(columns, this.fields.get(exact))) return;
    const namesake = columns.find((column) => column.name === field.name);
    const free =
      namesake !== undefined && this.#isFree(namesake.id, field.path) ? namesake.id : undefined;
    if (known === undefined && this.#use(columns, free, { ...candidate, key: plain })) return;
    const owner = known === undefined ? undefined : columns.find((column) => column.id === known);
    const inTheWay = owner ?? (free === undefined ? undefined : namesake);
    if (inTheWay === undefined) this.#add(columns, candidate, { key: plain, name: field.name });
    else this.#conflict(columns, candidate, { owner: inTheWay, exact });
  }

  /** Nobody's column, or that of a Protobuf field of another message: records of one table may be of several. */
  #isFree(id: number, path: string): boolean {
    if (!this.#owned.has(id)) return true;
    if (this.#taken.has(id) || !NUMBERED.test(path)) return false;
    const record = path.slice(0, path.lastIndexOf('.') + 1);
    return ![...this.fields].some(([key, owned]) => owned === id && key.startsWith(record));
  }

  /** The column a field is known to have, by today's path or a former one that no other field of the source took. */
  #lookUp(candidate: Candidate): number | undefined {
    for (const path of candidate.paths) {
      const key = candidate.scope.key(path);
      const id = this.fields.get(key);
      if (id === undefined || this.#taken.has(id)) continue;
      if (!this.#goesBySibling(id, key, candidate)) return id;
    }
    return undefined;
  }

  /** A column that was renamed away from `key`, and by its new name is another field of this very record. */
  #goesBySibling(id: number, key: string, { siblings }: Candidate): boolean {
    const marker = this.#markers.get(id);
    if (marker === undefined) return false;
    const path = marker.slice(0, marker.lastIndexOf('\\='));
    return path !== key && siblings.has(lastStep(path));
  }

  /** Binds the field to column `id` when that can hold it, widened if need be. */
  #use(
    columns: NestedField[],
    id: number | undefined,
    { field, scope, paths, key }: Candidate & { readonly key: string },
  ): boolean {
    const at = columns.findIndex((column) => column.id === id);
    const column = columns[at];
    if (column === undefined || this.#taken.has(column.id)) return false;
    if (!canHold(column.type, field.type)) return false;
    const type = this.#merge(
      column.type,
      field.type,
      this.#inside(column.id, { scope, paths, key }),
    );
    const name = this.#nameOf(columns, column, { field, scope, key });
    if (type !== column.type || name !== column.name) {
      columns[at] = { ...column, name, type };
      this.schemaChanged = true;
    }
    this.#bind(field.path, key, column.id);
    return true;
  }

  /** The scope of what is in a column: former paths count that lead to this very one. */
  #inside(
    id: number,
    { scope, paths, key }: Pick<Candidate, 'scope' | 'paths'> & { readonly key: string },
  ): Scope {
    const [own] = paths as readonly [string, ...string[]];
    const parents = [own, ...paths.slice(1).filter((p) => this.fields.get(scope.key(p)) === id)];
    if (key === scope.key(own)) return { parents, key: scope.key };
    return below(own, key, scope);
  }

  /** A column's name once this source has a say: the newest version renames what a former name owned. */
  #nameOf(
    columns: readonly NestedField[],
    column: NestedField,
    { field, scope, key }: Pick<Candidate, 'field' | 'scope'> & { readonly key: string },
  ): string {
    if (key !== scope.key(field.path)) return column.name;
    const marker = `${key}\\=${field.name}`;
    const present = this.#markers.get(column.id);
    if (present === marker) return column.name;
    const numbered = NUMBERED.test(key);
    if (present === undefined && numbered) {
      // Bound to a column that was there: from here on its name is followed.
      this.#mark(column.id, marker);
      return column.name;
    }
    if (!this.#request.mayRename) return column.name;
    const former =
      present !== undefined || !this.fields.has(key) || field.aliases.includes(column.name);
    if (!former || (present === undefined && column.name === field.name)) return column.name;
    this.#mark(column.id, marker);
    return freeName(columns, field.name, column.id);
  }

  #mark(id: number, marker: string): void {
    const present = this.#markers.get(id);
    if (present !== undefined) this.fields.delete(present);
    this.fields.set(marker, id);
    this.#markers.set(id, marker);
    this.fieldsChanged = true;
  }

  #conflict(
    columns: NestedField[],
    candidate: Candidate,
    { owner, exact }: { readonly owner: NestedField; readonly exact: string },
  ): void {
    const { field } = candidate;
    const suffix = typeName(field.type);
    this.conflicts.push({
      path: field.path,
      column: owner.name,
      columnType: typeName(owner.type),
      sourceType: suffix,
    });
    if (!this.#request.newColumns) return;
    this.#add(columns, candidate, { key: exact, name: `${field.name}__${suffix}` });
  }

  #add(
    columns: NestedField[],
    { field, scope }: Candidate,
    { key, name }: { readonly key: string; readonly name: string },
  ): void {
    const id = this.#nextId();
    this.#bind(field.path, key, id);
    const plain = key === scope.key(field.path);
    const inside = plain
      ? { parents: [field.path], key: scope.key }
      : below(field.path, key, scope);
    const column: NestedField = {
      id,
      name: freeName(columns, name, id),
      required: false,
      type: this.#fresh(field.type, inside),
      ...(field.doc === undefined ? {} : { doc: field.doc }),
    };
    columns.push(column);
    if (plain && NUMBERED.test(key)) this.#mark(id, `${key}\\=${field.name}`);
    this.schemaChanged = true;
  }

  #bind(path: string, key: string, id: number): void {
    assert(
      !this.#taken.has(id),
      `T10: two fields of a source, "${path}" one of them, in one column`,
    );
    this.bindings.set(path, id);
    this.#owned.add(id);
    this.#taken.add(id);
    if (this.fields.get(key) === id) return;
    this.fields.set(key, id);
    this.#index(key, id);
    this.fieldsChanged = true;
  }

  #nextId(): number {
    this.lastColumnId += 1;
    return this.lastColumnId;
  }

  /** A type with ids of its own, everything in it bound. */
  #fresh(type: ProposedType, scope: Scope): IcebergType {
    if (typeof type === 'string') return type;
    if (type.type === 'struct') {
      return { type: 'struct', fields: this.struct([], type.fields, scope) };
    }
    if (type.type === 'list') {
      const id = this.#nextId();
      this.#bind(type.elementPath, scope.key(type.elementPath), id);
      return {
        type: 'list',
        'element-id': id,
        'element-required': false,
        element: this.#fresh(type.element, { ...scope, parents: [type.elementPath] }),
      };
    }
    const keyId = this.#nextId();
    const valueId = this.#nextId();
    this.#bind(type.keyPath, scope.key(type.keyPath), keyId);
    this.#bind(type.valuePath, scope.key(type.valuePath), valueId);
    return {
      type: 'map',
      'key-id': keyId,
      key: this.#fresh(type.key, { ...scope, parents: [type.keyPath] }),
      'value-id': valueId,
      'value-required': false,
      value: this.#fresh(type.value, { ...scope, parents: [type.valuePath] }),
    };
  }

  /** `canHold` holds: the column's type, widened where the source is wider, nested columns found or made. */
  #merge(column: IcebergType, source: ProposedType, scope: Scope): IcebergType {
    if (typeof column === 'string') {
      const wider = isPromotionAllowed(source as IcebergType, column);
      return wider ? column : (source as IcebergType);
    }
    if (typeof source === 'string') return column;
    if (column.type === 'struct' && source.type === 'struct') {
      const fields = this.struct(column.fields, source.fields, scope).map(optional);
      const same = fields.every((field, i) => field === column.fields[i]);
      return same && fields.length === column.fields.length ? column : { type: 'struct', fields };
    }
    if (column.type === 'list' && source.type === 'list') {
      this.#bind(source.elementPath, scope.key(source.elementPath), column['element-id']);
      const inner = { ...scope, parents: scope.parents.map((path) => `${path}[]`) };
      const element = this.#merge(column.element, source.element, inner);
      if (element === column.element && !column['element-required']) return column;
      return { ...column, 'element-required': false, element };
    }
    if (column.type === 'map' && source.type === 'map') {
      this.#bind(source.keyPath, scope.key(source.keyPath), column['key-id']);
      this.#bind(source.valuePath, scope.key(source.valuePath), column['value-id']);
      const inner = { ...scope, parents: scope.parents.map((path) => `${path}{value}`) };
      const value = this.#merge(column.value, source.value, inner);
      // A map's key never evolves: a changed key struct would make equal keys unequal.
      if (value === column.value && !column['value-required']) return column;
      return { ...column, 'value-required': false, value };
    }
    return column;
  }
}

/** An entry of the map that says which name a column goes by; names are escaped, so a `\=` only stands there. */
const MARKER = /\\=/;
/** A path whose last step is a number. */
const NUMBERED = /\\#\d+$/;
/** An entry of a further type: the path, `\~`, the type's short name. */
const FURTHER = /^(.+)\\~[a-z0-9_]+$/;

const columnIsGone = (columns: readonly NestedField[], id: number | undefined) =>
  id !== undefined && !columns.some((column) => column.id === id);

/** A source may leave any field of a struct out. */
const optional = (field: NestedField): NestedField =>
  field.required ? { ...field, required: false } : field;

/** Inside a column of a further type: its paths are kept under that column's own key. */
function below(path: string, key: string, scope: Scope): Scope {
  return {
    parents: [path],
    key: (inner) => (inner.startsWith(path) ? key + inner.slice(path.length) : scope.key(inner)),
  };
}

/** The last step of a path, escapes and all. */
const lastStep = (path: string) => /(?:[^\\.]|\\.)*$/.exec(path)![0];

/** Today's path, then former names of the field below all names of its parents that count. */
function pathsOf(field: ProposedField, own: ReadonlySet<string>, scope: Scope): string[] {
  const last = lastStep(field.path);
  // A name that another field of the same record has is that field's.
  const aliases = field.aliases.map(escaped).filter((alias) => !own.has(alias));
  const names = [last, ...aliases];
  const prefix = field.path.slice(0, field.path.length - last.length);
  const [, ...former] = scope.parents;
  const prefixes = [prefix, ...former.map((parent) => `${parent}.`)];
  return [...new Set(prefixes.flatMap((one) => names.map((name) => one + name)))];
}

const escaped = (name: string) => fieldPath('', name);

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

/** A short word for a type, as the suffix of a further column: `string`, `decimal_10_2`, `list_long`, `struct`. */
export function typeName(type: IcebergType | ProposedType): string {
  if (typeof type !== 'string') {
    if (type.type === 'list') return `list_${typeName(type.element)}`;
    if (type.type === 'map') return `map_${typeName(type.key)}_${typeName(type.value)}`;
    return type.type;
  }
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

/** True for the entries of a field map that are source paths: neither a further type's nor a name's. */
export const isSourcePath = (key: string): boolean => !/\\[~=]/.test(key);

// WHERE clauses of a query → a predicate over a table's columns that scan planning can prune by. What isn't
// understood is left out, which is always safe: DuckDB applies the whole clause to whatever is read.
import {
  type CompareOperator,
  findField,
  indexSchema,
  isPrimitive,
  type Predicate,
  type PrimitiveValue,
  parseDecimal,
  parsePrimitive,
  parseTimestamp,
  type Schema,
  singleValueFromJson,
} from '../formats/iceberg/index.ts';
import type { Condition, Node } from './statement.ts';

const OPERATORS: Readonly<Record<string, CompareOperator>> = {
  COMPARE_EQUAL: '=',
  COMPARE_NOTEQUAL: '!=',
  COMPARE_LESSTHAN: '<',
  COMPARE_LESSTHANOREQUALTO: '<=',
  COMPARE_GREATERTHAN: '>',
  COMPARE_GREATERTHANOREQUALTO: '>=',
};

const MIRRORED: Readonly<Record<CompareOperator, CompareOperator>> = {
  '=': '=',
  '!=': '!=',
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
};

/** What all conditions say together; undefined when nothing can be used. */
export function predicateOf(
  conditions: readonly Condition[],
  schema: Schema,
): Predicate | undefined {
  const parts = conditions
    .map((condition) => toPredicate(condition.expression, condition, schema))
    .filter((part) => part !== undefined);
  return parts.length === 0 ? undefined : { kind: 'and', parts };
}

function toPredicate(node: Node, scope: Condition, schema: Schema): Predicate | undefined {
  const type = String(node['type']);
  const children = (node['children'] ?? []) as readonly Node[];
  if (type === 'CONJUNCTION_AND') {
    const parts = children
      .map((child) => toPredicate(child, scope, schema))
      .filter((part) => part !== undefined);
    return parts.length === 0 ? undefined : { kind: 'and', parts };
  }
  if (type === 'CONJUNCTION_OR') {
    const parts = children.map((child) => toPredicate(child, scope, schema));
    // One side that isn't understood could match anything.
    return parts.includes(undefined) ? undefined : { kind: 'or', parts: parts as Predicate[] };
  }
  const operator = OPERATORS[type];
  if (operator !== undefined) {
    const [left, right] = [node['left'] as Node, node['right'] as Node];
    return (
      comparison(left, operator, right, { scope, schema }) ??
      comparison(right, MIRRORED[operator], left, { scope, schema })
    );
  }
  if (type === 'COMPARE_BETWEEN') {
    const input = node['input'] as Node;
    const parts = [
      comparison(input, '>=', node['lower'] as Node, { scope, schema }),
      comparison(input, '<=', node['upper'] as Node, { scope, schema }),
    ].filter((part) => part !== undefined);
    return parts.length === 0 ? undefined : { kind: 'and', parts };
  }
  if (type === 'COMPARE_IN') return inList(children, scope, schema);
  if (type === 'OPERATOR_IS_NOT_NULL' || (type === 'OPERATOR_IS_NULL' && scope.alone)) {
    const field = children[0] === undefined ? undefined : columnOf(children[0], scope, schema);
    if (field === undefined) return undefined;
    return { kind: type === 'OPERATOR_IS_NULL' ? 'is-null' : 'not-null', fieldId: field.id };
  }
  return undefined;
}

interface Context {
  readonly scope: Condition;
  readonly schema: Schema;
}

function comparison(
  column: Node,
  operator: CompareOperator,
  constant: Node,
  { scope, schema }: Context,
): Predicate | undefined {
  const field = columnOf(column, scope, schema);
  if (field === undefined) return undefined;
  const value = constantOf(constant, field.type);
  return value === undefined ? undefined : { kind: 'compare', operator, fieldId: field.id, value };
}

function inList(
  children: readonly Node[],
  scope: Condition,
  schema: Schema,
): Predicate | undefined {
  const [column, ...constants] = children;
  const field = column === undefined ? undefined : columnOf(column, scope, schema);
  if (field === undefined) return undefined;
  const values = constants.map((constant) => constantOf(constant, field.type));
  return values.includes(undefined)
    ? undefined
    : { kind: 'in', fieldId: field.id, values: values as PrimitiveValue[] };
}

/** The primitive column of this table that an expression names, if it certainly is one of this table. */
function columnOf(
  node: Node,
  { alias, alone }: Condition,
  schema: Schema,
): { readonly id: number; readonly type: string } | undefined {
  if (node['type'] !== 'COLUMN_REF') return undefined;
  const names = (node['column_names'] ?? []) as readonly string[];
  const qualified = names.length > 1 && names[0]!.toLowerCase() === alias.toLowerCase();
  if (!qualified && !alone) return undefined;
  const path = (qualified ? names.slice(1) : names).join('.');
  const field = findField(schema, path) ?? ignoringCase(schema, path);
  if (field === undefined || field.repeated || !isPrimitive(field.type)) return undefined;
  return { id: field.id, type: field.type };
}

function ignoringCase(schema: Schema, path: string) {
  const wanted = path.toLowerCase();
  const found = [...indexSchema(schema).byName.values()].filter(
    (field) => field.fullName.toLowerCase() === wanted,
  );
  return found.length === 1 ? found[0] : undefined;
}

/** A literal as a value of the column's type; undefined when they don't certainly compare as such. */
function constantOf(node: Node, type: string): PrimitiveValue | undefined {
  if (node['type'] === 'OPERATOR_CAST') {
    const child = node['child'] as Node;
    const target = String((node['cast_type'] as Node | undefined)?.['id']);
    if (node['try_cast'] === true || child['type'] !== 'VALUE_CONSTANT') return undefined;
    return typedText(child, target, type);
  }
  if (node['type'] !== 'VALUE_CONSTANT') return undefined;
  const constant = node['value'] as Node;
  const value = constant['value'];
  const id = String((constant['type'] as Node | undefined)?.['id']);
  if (constant['is_null'] === true || value === undefined) return undefined;
  if (id === 'VARCHAR') return textConstant(String(value), type);
  if (id === 'BOOLEAN') return type === 'boolean' ? Boolean(value) : undefined;
  if (typeof value !== 'number' && typeof value !== 'bigint') return undefined;
  return numberConstant(value, constant['type'] as Node, type);
}

/** `DATE '…'`, `TIMESTAMP '…'`, `TIMESTAMPTZ '…'` against a column of a kindred type. Sessions run in UTC. */
function typedText(child: Node, target: string, type: string): PrimitiveValue | undefined {
  const constant = child['value'] as Node;
  const text = constant['value'];
  if (typeof text !== 'string') return undefined;
  if (target === 'DATE')
    return type === 'date' || isTimestamp(type) ? textConstant(text, type) : undefined;
  if (target.startsWith('TIMESTAMP') && isTimestamp(type)) return textConstant(text, type);
  return undefined;
}

const isTimestamp = (type: string) => type === 'timestamp' || type === 'timestamptz';

function textConstant(text: string, type: string): PrimitiveValue | undefined {
  if (type === 'string') return text;
  try {
    if (type === 'date') return singleValueFromJson('date', text);
  } catch {
    return undefined;
  }
  if (!isTimestamp(type)) return undefined;
  const full = /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00` : text;
  return parseTimestamp(full.replace(/([+-]\d{2})$/, '$1:00'), 6);
}

function numberConstant(
  value: number | bigint,
  constantType: Node,
  type: string,
): PrimitiveValue | undefined {
  const { kind, scale } = parsePrimitive(type);
  const info = constantType['type_info'] as Node | undefined;
  const constantScale = constantType['id'] === 'DECIMAL' ? Number(info?.['scale'] ?? 0) : 0;
  switch (kind) {
    // A float column is compared as float or as double, depending on the literal: not pruned by.
    case 'double':
      return Number(value) / 10 ** constantScale;
    case 'int':
    case 'long':
      if (constantScale > 0 || !Number.isInteger(Number(value))) {
        return Number(value) / 10 ** constantScale;
      }
      return kind === 'int' && typeof value === 'number' ? value : BigInt(value);
    case 'decimal':
      if (typeof value === 'number' && !Number.isInteger(value)) return undefined;
      return parseDecimal(scaled(BigInt(value), constantScale), scale);
    default:
      return undefined;
  }
}

function scaled(unscaled: bigint, scale: number): string {
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0');
  const sign = unscaled < 0n ? '-' : '';
  return scale === 0 ? sign + digits : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

// The names and sentences of changes that break readers of JSON Schemas, as clients of Confluent's registry see them.

/** What a change does to a path, in the words of the sentence about it. */
type Wording =
  | 'absent'
  | 'more'
  | 'less'
  | 'fewer'
  | 'different value'
  | 'different type'
  | 'longer'
  | 'open'
  | 'required'
  | 'closed'
  | 'removed'
  | 'added'
  | 'nothing';

const WORDING = {
  SCHEMA_ADDED: 'nothing',
  TYPE_CHANGED: 'different type',
  TYPE_NARROWED: 'different type',
  MAX_LENGTH_ADDED: 'absent',
  MAX_LENGTH_DECREASED: 'less',
  MIN_LENGTH_ADDED: 'absent',
  MIN_LENGTH_INCREASED: 'more',
  PATTERN_ADDED: 'absent',
  PATTERN_CHANGED: 'different value',
  MAXIMUM_ADDED: 'absent',
  MAXIMUM_DECREASED: 'less',
  MINIMUM_ADDED: 'absent',
  MINIMUM_INCREASED: 'more',
  EXCLUSIVE_MAXIMUM_ADDED: 'absent',
  EXCLUSIVE_MAXIMUM_DECREASED: 'less',
  EXCLUSIVE_MINIMUM_ADDED: 'absent',
  EXCLUSIVE_MINIMUM_INCREASED: 'more',
  MULTIPLE_OF_ADDED: 'absent',
  MULTIPLE_OF_EXPANDED: 'more',
  MULTIPLE_OF_CHANGED: 'different value',
  REQUIRED_ATTRIBUTE_ADDED: 'absent',
  MAX_PROPERTIES_ADDED: 'absent',
  MAX_PROPERTIES_DECREASED: 'less',
  MIN_PROPERTIES_ADDED: 'absent',
  MIN_PROPERTIES_INCREASED: 'more',
  ADDITIONAL_PROPERTIES_REMOVED: 'absent',
  ADDITIONAL_PROPERTIES_NARROWED: 'fewer',
  UNEVALUATED_PROPERTIES_REMOVED: 'absent',
  UNEVALUATED_PROPERTIES_NARROWED: 'fewer',
  DEPENDENCY_ARRAY_ADDED: 'absent',
  DEPENDENCY_ARRAY_EXTENDED: 'longer',
  DEPENDENCY_ARRAY_CHANGED: 'different value',
  DEPENDENCY_SCHEMA_ADDED: 'absent',
  REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL: 'open',
  REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL: 'open',
  OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL: 'open',
  REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL: 'required',
  PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL: 'closed',
  PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: 'removed',
  PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: 'added',
  MAX_ITEMS_ADDED: 'absent',
  MAX_ITEMS_DECREASED: 'less',
  MIN_ITEMS_ADDED: 'absent',
  MIN_ITEMS_INCREASED: 'more',
  MAX_CONTAINS_ADDED: 'absent',
  MAX_CONTAINS_DECREASED: 'less',
  MIN_CONTAINS_ADDED: 'absent',
  MIN_CONTAINS_INCREASED: 'more',
  UNIQUE_ITEMS_ADDED: 'absent',
  ADDITIONAL_ITEMS_REMOVED: 'absent',
  ADDITIONAL_ITEMS_NARROWED: 'fewer',
  UNEVALUATED_ITEMS_REMOVED: 'absent',
  UNEVALUATED_ITEMS_NARROWED: 'fewer',
  ITEM_ADDED_TO_OPEN_CONTENT_MODEL: 'open',
  ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL: 'closed',
  ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: 'removed',
  ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: 'added',
  ENUM_ARRAY_NARROWED: 'fewer',
  ENUM_ARRAY_CHANGED: 'different type',
  COMBINED_TYPE_CHANGED: 'different type',
  COMBINED_TYPE_SUBSCHEMAS_CHANGED: 'different type',
  PRODUCT_TYPE_EXTENDED: 'longer',
  SUM_TYPE_NARROWED: 'fewer',
  NOT_TYPE_EXTENDED: 'longer',
} as const satisfies Record<string, Wording>;

/** Changes that break. */
export type JsonChange = keyof typeof WORDING;

/** The sentence for a change at `path`, e.g. `#/properties/a`; `reader` and `writer` are `new` and `old` or reversed. */
export function jsonSentence(
  { type, path }: { readonly type: JsonChange; readonly path: readonly string[] },
  reader: string,
  writer: string,
): string {
  const at = `at path '#/${path.join('/')}'`;
  switch (WORDING[type] as Wording) {
    case 'absent':
      return `The keyword ${at} in the ${reader} schema is not present in the ${writer} schema`;
    case 'more':
      return `The value ${at} in the ${reader} schema is more than its value in the ${writer} schema`;
    case 'less':
      return `The value ${at} in the ${reader} schema is less than its value in the ${writer} schema`;
    case 'fewer':
      return `An array or combined type ${at} has fewer elements in the ${reader} schema than the ${writer} schema`;
    case 'longer':
      return `An array or combined type ${at} has more elements in the ${reader} schema than the ${writer} schema`;
    case 'different value':
      return `The value ${at} is different between the ${reader} and ${writer} schema`;
    case 'different type':
      return `A type ${at} is different between the ${reader} schema and the ${writer} schema`;
    case 'open':
      return `The ${writer} schema has an open content model and the ${reader} schema has a property or item ${at} which is missing in it`;
    case 'required':
      return `The ${reader} schema has a required property ${at} which is missing in the ${writer} schema`;
    case 'closed':
      return `The ${reader} schema has a closed content model and is missing a property or item present ${at} in the ${writer} schema`;
    case 'removed':
      return `A property or item is missing in the ${reader} schema but present ${at} in the ${writer} schema and is not covered by its partially open content model`;
    case 'added':
      return `The ${reader} schema has a property or item ${at} which is missing in the ${writer} schema and is not covered by its partially open content model`;
    case 'nothing':
      return `The ${reader} schema restricts values ${at}, which the ${writer} schema does not`;
  }
}

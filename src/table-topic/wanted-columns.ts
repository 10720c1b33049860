// The columns that a topic's configs want of its table before any record is read: the system's, the whole value where it
// is kept, those declared; and of a source's columns those that the config chooses, under the names it wants. Pure.
// Not for: what records or schemas bring (bound-sources.ts).
import type { ProposedStruct } from '../formats/arrow/proposed-schema.ts';
import { columnSelection, selectColumns } from './column-selection.ts';
import { declaredStruct } from './declared-columns.ts';
import type { TopicConfigs } from './settings/index.ts';
import { systemFields, wantedSystemColumns, wholeValue } from './system-columns.ts';

/** Converters whose columns are a registered schema's. */
const BY_SCHEMA: ReadonlySet<string> = new Set(['by_schema_id', 'by_latest_schema']);

/** Columns that don't depend on records: those the table must have before any job. */
export function standingColumns(config: TopicConfigs): ProposedStruct {
  const key = config['table.topic.convert.key.type'];
  // A key by schema gets its column with its first schema.
  const wanted = wantedSystemColumns(config).filter(
    (column) => !(column === 'key' && BY_SCHEMA.has(key)),
  );
  const system = systemFields(wanted, key === 'raw' ? 'binary' : 'string');
  const value = config['table.topic.convert.value.type'];
  const whole = config['table.topic.transform.value.type'] === 'none';
  if (BY_SCHEMA.has(value) || (value === 'json' && !whole)) {
    return { type: 'struct', fields: system };
  }
  const kept = wholeValue(value === 'raw' ? 'binary' : 'string');
  return { type: 'struct', fields: [...kept.fields, ...system] };
}

/** The value's columns, then those that stand. */
export function withStanding(config: TopicConfigs, value: ProposedStruct): ProposedStruct {
  const known = new Set(value.fields.map((field) => field.path));
  const standing = standingColumns(config).fields.filter((field) => !known.has(field.path));
  return { type: 'struct', fields: [...value.fields, ...standing] };
}

/** The value's columns that the config wants, under the names it wants. */
export const chosenColumns = (config: TopicConfigs, value: ProposedStruct): ProposedStruct =>
  selectColumns(value, columnSelection(config));

/** Columns that the config declares; none, if it doesn't. */
export const declaredColumns = (config: TopicConfigs): ProposedStruct =>
  chosenColumns(config, declaredStruct(config['table.topic.columns']));

/**
 * Columns of a new table; undefined: they will be known from records.
 * `newest`: those of the newest registered schema, if there is one.
 */
export async function knownColumns(
  config: TopicConfigs,
  newest: () => Promise<ProposedStruct | undefined>,
): Promise<ProposedStruct | undefined> {
  switch (config['table.topic.convert.value.type']) {
    case 'raw':
      return withStanding(config, wholeValue('binary'));
    case 'string':
      return withStanding(config, wholeValue('string'));
    case 'json': {
      if (config['table.topic.transform.value.type'] !== 'none') {
        const declared = declaredColumns(config);
        return declared.fields.length === 0 ? undefined : withStanding(config, declared);
      }
      return withStanding(config, wholeValue('string'));
    }
    case 'by_schema_id':
    case 'by_latest_schema': {
      const columns = await newest();
      return columns === undefined
        ? undefined
        : withStanding(config, chosenColumns(config, columns));
    }
  }
}

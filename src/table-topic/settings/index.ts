// Every `table.topic.*` config a topic may carry, and the settings of the table work of a whole process,
// one file a theme; here they are joined. The definitions are the documentation: docs, defaults, syntax. What
// is understood but not served is listed by its theme with the reason, so that an unknown or unserved config is
// refused at once instead of being ignored.
// Not for: checks that need other topics or a schema (validate.ts).
import { FloeError } from '../../base/error.ts';
import { findSetting, parseSetting, type Settings, type Values } from '../../base/settings.ts';
import * as catalog from './catalog.ts';
import * as columns from './columns.ts';
import * as convert from './convert.ts';
import * as errors from './errors.ts';
import * as evolution from './evolution.ts';
import * as layout from './layout.ts';
import * as lifecycle from './lifecycle.ts';
import * as maintenance from './maintenance.ts';
import * as naming from './naming.ts';
import type { Refusals, Theme } from './theme.ts';
import * as upsert from './upsert.ts';

export { letterTopicName } from './errors.ts';
export { SYSTEM_COLUMNS, type SystemColumn } from './layout.ts';
export { type Backfill, isEnabled } from './lifecycle.ts';
export { tableIdentifier } from './naming.ts';
export { type TableSettings, tableSettings } from './process.ts';

const themes: readonly Theme[] = [
  lifecycle,
  naming,
  convert,
  layout,
  columns,
  errors,
  evolution,
  upsert,
  maintenance,
  catalog,
];

/** Topic configs that are served, by full name. */
export const topicConfigs = {
  ...lifecycle.configs,
  ...naming.configs,
  ...convert.configs,
  ...layout.configs,
  ...columns.configs,
  ...errors.configs,
  ...evolution.configs,
  ...upsert.configs,
  ...maintenance.configs,
  ...catalog.configs,
} as const satisfies Settings;

export type TopicConfigs = Values<typeof topicConfigs>;

const PREFIXES = ['table.topic.', 'automq.table.topic.'];

/** Configs that are understood and refused, with the sentence that says why and what to do instead. */
export const unservedConfigs: Refusals = Object.assign({}, ...themes.map((t) => t.unserved ?? {}));

const unservedValues: Readonly<Record<string, Refusals>> = Object.assign(
  {},
  ...themes.map((theme) => theme.unservedValues ?? {}),
);

/** True for every config name that belongs to table topics, served or not. */
export function isTableTopicConfig(name: string): boolean {
  return PREFIXES.some((prefix) => name.startsWith(prefix));
}

/**
 * The proper name and canonical value of one config of a topic.
 * @throws FloeError `invalid` (unknown name, bad value), `unsupported` (understood, not served).
 */
export function parseTopicConfig(name: string, value: string): { name: string; value: string } {
  const unserved = unservedConfigs[name];
  if (unserved !== undefined) {
    // Turning off what isn't there is no request for it.
    if (value.trim() === 'false') return { name, value: 'false' };
    throw new FloeError('unsupported', `${name}: ${unserved}`);
  }
  if (name.startsWith(layout.PROPERTY_PREFIX))
    return { name, value: layout.checkProperty(name, value) };
  const found = findSetting(topicConfigs, name);
  if (found === undefined) {
    throw new FloeError(
      'invalid',
      `unknown topic config "${name}": see docs/settings.md for those of table topics`,
    );
  }
  const [proper, setting] = found;
  const refused = unservedValues[proper]?.[value.trim()];
  if (refused !== undefined) throw new FloeError('unsupported', `${name}: ${refused}`);
  return { name: proper, value: setting.format(parseSetting(name, setting, value)) };
}

export type ResolvedTopicConfigs = TopicConfigs & {
  readonly properties: Readonly<Record<string, string>>;
};

/** A topic's config is never changed in place, and asked for at every commit and look. */
const resolved = new WeakMap<Readonly<Record<string, string>>, ResolvedTopicConfigs>();

/**
 * What a topic's config asks of its table; other configs of the topic are passed over.
 * @throws FloeError `invalid`, `unsupported`.
 */
export function resolveTopicConfigs(
  config: Readonly<Record<string, string>>,
): ResolvedTopicConfigs {
  let found = resolved.get(config);
  if (found === undefined) {
    found = resolve(config);
    resolved.set(config, found);
  }
  return found;
}

function resolve(config: Readonly<Record<string, string>>): ResolvedTopicConfigs {
  const values: Record<string, unknown> = {};
  const properties: Record<string, string> = {};
  for (const [name, setting] of Object.entries(topicConfigs)) values[name] = setting.default;
  for (const [given, value] of Object.entries(config)) {
    if (!isTableTopicConfig(given)) continue;
    const { name } = parseTopicConfig(given, value);
    if (name.startsWith(layout.PROPERTY_PREFIX))
      properties[name.slice(layout.PROPERTY_PREFIX.length)] = value;
    else if (Object.hasOwn(topicConfigs, name)) {
      values[name] = (topicConfigs as Settings)[name]!.parse(value);
    }
  }
  return { ...(values as TopicConfigs), properties };
}

// Names of namespaces and tables: checked, joined to keys, shown to people, and made into safe folder names.
import { FloeError } from '../base/error.ts';
import { LEVEL_SEPARATOR, type NamespaceKey } from '../metadata/catalog.ts';
import type { TableIdentifier } from './catalog.ts';

/** Longest name of a table or namespace level, in characters. */
export const MAX_NAME_LENGTH = 512;
/** Levels that a namespace may have. */
export const MAX_LEVELS = 32;

/** @throws FloeError `invalid` for a level that is empty, too long or holds control characters. */
export function namespaceKey(levels: readonly string[]): NamespaceKey {
  if (levels.length === 0 || levels.length > MAX_LEVELS)
    throw new FloeError('invalid', `a namespace has 1 to ${MAX_LEVELS} levels`);
  for (const level of levels) checkName(level, 'a namespace level');
  return levels.join(LEVEL_SEPARATOR);
}

export function namespaceLevels(key: NamespaceKey): string[] {
  return key.split(LEVEL_SEPARATOR);
}

/** @throws FloeError `invalid`. */
export function checkName(name: string, what = 'a table name'): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const wrong = name === '' || name.length > MAX_NAME_LENGTH || /[\u0000-\u001f\u007f]/.test(name);
  if (wrong || !name.isWellFormed()) {
    throw new FloeError(
      'invalid',
      `${what} is 1 to ${MAX_NAME_LENGTH} characters without control characters: ${JSON.stringify(name.slice(0, 80))}`,
    );
  }
}

/** `a.b.table`, for messages. */
export function shownTable({ namespace, name }: TableIdentifier): string {
  return [...namespace, name].join('.');
}

/**
 * A folder name that every engine and store takes as it is: other characters than letters, digits, `_` and `-`
 * become `_`. Two names may give one slug: something unique must follow.
 */
export function slug(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);
}

/** What makes a table's folder its own. */
export const uuidSuffix = (uuid: string) => uuid.replaceAll('-', '').slice(0, 12);

/** A folder below `root` that no other table or view has or had: its uuid is in the name. */
export function ownLocation(
  root: string,
  { namespace, name }: TableIdentifier,
  uuid: string,
): string {
  return `${root}/${slug(namespace.join('.'))}/${slug(name)}-${uuidSuffix(uuid)}`;
}

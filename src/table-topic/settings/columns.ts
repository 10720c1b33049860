// Configs that choose among the columns a source would make, and rename them.
import { FloeError } from '../../base/error.ts';
import type { Setting, Settings } from '../../base/settings.ts';
import { RESERVED_COLUMNS } from '../../formats/arrow/proposed-schema.ts';
import { type ColumnPath, formatColumns, parseColumns } from '../column-list.ts';
import { formatRenames, parseRenames, type RenameRule } from '../column-selection.ts';
import { type DeclaredColumn, formatDeclared, parseDeclared } from '../declared-columns.ts';

const columnList = (doc: string): Setting<readonly ColumnPath[]> => ({
  type: 'list',
  default: [],
  valid: '[a, b.c, `odd name`]',
  doc,
  parse: parseColumns,
  format: formatColumns,
});

const renames: Setting<readonly RenameRule[]> = {
  type: 'list',
  default: [],
  valid: '[a: new name, b.c: `odd name`]',
  doc: 'Other names for fields of the value, as [userId: user_id, place.lat: latitude]; a nested field stays in its struct. A column that is there already is renamed in place, for old rows too. A rule taken back leaves the name.',
  parse(text) {
    const rules = parseRenames(text);
    for (const { path, name } of rules) {
      if (path.length === 1 && RESERVED_COLUMNS.has(name.toLowerCase())) {
        throw new FloeError('invalid', `"${name}" is a name of Floe’s own columns`);
      }
    }
    return rules;
  },
  format: formatRenames,
};

export const configs = {
  'table.topic.columns': {
    type: 'list',
    default: [],
    valid: '[at timestamptz, price decimal(12, 2), tags list<string>, a.b long, raw json]',
    doc: 'Types of columns for plain JSON (convert.value.type=json), where inference would guess otherwise: they are there from the start. timestamptz and date take ISO text, decimal text or numbers, binary base64, uuid text, map<string, T> objects with any keys; json keeps whatever comes as its text. A value that doesn’t fit takes a column <name>__<type>, as always. A column that is there with another type suspends the table.',
    parse: parseDeclared,
    format: formatDeclared,
  } as Setting<readonly DeclaredColumn[]>,
  'table.topic.columns.include': columnList(
    'Fields of the value that become columns, with all that is below them; lists and maps are passed through by name. Empty: all. Others are skipped, not kept anywhere.',
  ),
  'table.topic.columns.exclude': columnList(
    'Fields of the value that become no columns. A column that is there already stays and is null in new rows.',
  ),
  'table.topic.columns.rename': renames,
} as const satisfies Settings;

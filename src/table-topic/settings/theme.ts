// What one theme of settings of table topics consists of; index.ts joins the themes.
import type { Settings } from '../../base/settings.ts';

/** Texts by full config name: what is understood and refused, and what to do instead. */
export type Refusals = Readonly<Record<string, string>>;

/** Configs of one theme: a new one is added to its theme's file and is served, checked and documented. */
export interface Theme {
  /** Served configs by full name. */
  readonly configs: Settings;
  /** Configs that are understood and refused, with the reason. */
  readonly unserved?: Refusals;
  /** Values of served configs that are understood and refused: by config, then by value. */
  readonly unservedValues?: Readonly<Record<string, Refusals>>;
}

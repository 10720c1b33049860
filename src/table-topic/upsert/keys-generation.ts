// Which life of a table a key index belongs to, as the table says it: a rewind begins another one.

/**
 * The table property that a rewind sets anew: what an index knows of before, the stamps of changes that will come again
 * above all, counts no more.
 */
export const KEYS_GENERATION_PROPERTY = 'floe.keys-generation';

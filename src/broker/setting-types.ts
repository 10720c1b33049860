// Types of settings that only the broker needs: Long.MAX_VALUE, unset numbers, addresses.

import { FloeError } from '../base/error.ts';
import { isIpAddress } from '../base/ip-address.ts';
import { list, long, type Setting } from '../base/settings.ts';

/** Kafka's Long.MAX_VALUE, as near as a number gets: means "no limit". */
export const LONG_MAX = 2 ** 63;

/** A long whose default or value may be Long.MAX_VALUE, which a number can't print exactly. */
export function hugeLong(options: Parameters<typeof long>[0]): Setting<number> {
  return {
    ...long(options),
    format: (value) => (value >= LONG_MAX ? '9223372036854775807' : String(value)),
  };
}

/** A long that may be left unset (Kafka's null default). */
export function optionalLong(options: {
  readonly doc: string;
  readonly min: number;
}): Setting<number | null> {
  const inner = long({ default: options.min, doc: options.doc, min: options.min });
  return {
    type: 'long',
    default: null,
    doc: options.doc,
    parse: (value) => (value.trim() === '' ? null : inner.parse(value)),
    format: (value) => (value === null ? '' : String(value)),
  };
}

/** A list whose items must all be of one form. */
function listOf(
  doc: string,
  valid: string,
  isOne: (item: string) => boolean,
): Setting<readonly string[]> {
  const base = list({ default: [] as readonly string[], doc });
  return {
    ...base,
    valid: `${valid}, …`,
    parse(value) {
      const items = base.parse(value);
      for (const item of items) {
        if (!isOne(item)) throw new FloeError('invalid', `"${item}" is not of the form ${valid}`);
      }
      return items;
    },
  };
}

/** Numbers of partitions, or nothing; whether a topic has them, now or later, is another matter. */
export function partitionNumbers(doc: string): Setting<readonly string[]> {
  const base = list({ default: [] as readonly string[], doc });
  return {
    ...base,
    valid: 'partition numbers, as in 0,3',
    parse(value) {
      const items = base.parse(value);
      for (const item of items) {
        if (!/^\d{1,9}$/.test(item))
          throw new FloeError('invalid', `"${item}" is not a partition number`);
      }
      return items;
    },
  };
}

/** Addresses `NAME://host:port`, or nothing. */
export const listenerList = (doc: string) =>
  listOf(doc, 'NAME://host:port', (item) => /^[A-Za-z0-9_]+:\/\/[^\s/]*:\d+$/.test(item));

/** Counts per IP address, `address:count`. */
export const addressCounts = (doc: string) =>
  listOf(doc, 'ADDRESS:COUNT', (item) => {
    const colon = item.lastIndexOf(':');
    return isIpAddress(item.slice(0, colon)) && /^\d+$/.test(item.slice(colon + 1));
  });

// ISO 8601 dates and times from UTF-8 bytes: any offset, a fraction of up to nine digits, `T` or a space between.
// Not for: printing (formats/iceberg/value.ts).
import { daysFromCivil } from '../iceberg/value.ts';

/** The last text read: days since the epoch, microseconds of the day in UTC terms, whether it named an offset. */
export class IsoReader {
  days = 0;
  /** Microseconds since the epoch; finer digits are dropped towards the past. */
  micros = 0n;
  hasOffset = false;
  #bytes: Uint8Array = new Uint8Array(0);
  #pos = 0;
  #end = 0;

  /** Reads `YYYY-MM-DD`; false when the text is anything else. */
  readDate(bytes: Uint8Array, start: number, end: number): boolean {
    this.#bytes = bytes;
    this.#pos = start;
    this.#end = end;
    return this.#date() && this.#pos === end;
  }

  /** Reads a date and time, with or without offset (see `hasOffset`); false when the text is anything else. */
  readTimestamp(bytes: Uint8Array, start: number, end: number): boolean {
    this.#bytes = bytes;
    this.#pos = start;
    this.#end = end;
    if (!this.#date() || !(this.#take(0x54) || this.#take(0x74) || this.#take(0x20))) return false;
    const hour = this.#digits(2);
    if (!this.#take(0x3a)) return false;
    const minute = this.#digits(2);
    let second = 0;
    let fraction = 0;
    if (this.#take(0x3a)) {
      second = this.#digits(2);
      if (this.#take(0x2e) || this.#take(0x2c)) fraction = this.#fraction();
    }
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59) return false;
    if (second < 0 || second > 59 || fraction < 0) return false;
    const offset = this.#offsetMinutes();
    if (offset === undefined || this.#pos !== this.#end) return false;
    const seconds = this.days * 86_400 + hour * 3600 + (minute - offset) * 60 + second;
    this.micros = BigInt(seconds) * 1_000_000n + BigInt(fraction);
    return true;
  }

  #take(byte: number): boolean {
    if (this.#pos >= this.#end || this.#bytes[this.#pos] !== byte) return false;
    this.#pos++;
    return true;
  }

  /** `count` digits as a number; −1 when they aren't there. */
  #digits(count: number): number {
    if (this.#pos + count > this.#end) return -1;
    let value = 0;
    for (let i = 0; i < count; i++) {
      const digit = this.#bytes[this.#pos + i]! - 0x30;
      if (digit < 0 || digit > 9) return -1;
      value = value * 10 + digit;
    }
    this.#pos += count;
    return value;
  }

  /** A year of four digits, or, with a sign before it, of up to six. */
  #year(): number | undefined {
    const sign = this.#take(0x2d) ? -1 : this.#take(0x2b) ? 1 : 0;
    let year = this.#digits(4);
    if (year < 0) return undefined;
    for (let more = 0; sign !== 0 && more < 2; more++) {
      const digit = this.#digits(1);
      if (digit < 0) break;
      year = year * 10 + digit;
    }
    return sign === -1 ? -year : year;
  }

  #date(): boolean {
    const year = this.#year();
    if (year === undefined || !this.#take(0x2d)) return false;
    const month = this.#digits(2);
    if (month < 1 || month > 12 || !this.#take(0x2d)) return false;
    const day = this.#digits(2);
    if (day < 1 || day > 31) return false;
    this.days = daysFromCivil(year, month, day);
    // A day past the month's end lands in the next month.
    return (
      day <= 28 || daysFromCivil(month === 12 ? year + 1 : year, (month % 12) + 1, 1) > this.days
    );
  }

  /** One to nine digits as microseconds; −1 when there are none or more. */
  #fraction(): number {
    let micros = 0;
    let digits = 0;
    for (; this.#pos < this.#end; this.#pos++, digits++) {
      const digit = this.#bytes[this.#pos]! - 0x30;
      if (digit < 0 || digit > 9) break;
      if (digits < 6) micros = micros * 10 + digit;
    }
    if (digits === 0 || digits > 9) return -1;
    for (let i = digits; i < 6; i++) micros *= 10;
    return micros;
  }

  /** `Z`, `+HH`, `+HH:MM`, `+HHMM` or nothing (0); undefined when malformed. */
  #offsetMinutes(): number | undefined {
    this.hasOffset = this.#pos < this.#end;
    if (!this.hasOffset || this.#take(0x5a) || this.#take(0x7a)) return 0;
    const sign = this.#take(0x2b) ? 1 : this.#take(0x2d) ? -1 : 0;
    if (sign === 0) return undefined;
    const hours = this.#digits(2);
    if (hours < 0 || hours > 23) return undefined;
    if (this.#pos === this.#end) return sign * hours * 60;
    this.#take(0x3a);
    const minutes = this.#digits(2);
    return minutes < 0 || minutes > 59 ? undefined : sign * (hours * 60 + minutes);
  }
}

// A row that can't be decoded: thrown inside a decoder, caught at the row's border, returned as a reason.
// One preallocated object without a stack trace, so that a flood of bad records stays cheap.
// Not for: anything but a record's own fault (bugs assert, the outside world throws FloeError).

export class RowFailure {
  /** What is wrong, for people; becomes the dead letter's `error`. */
  reason = '';
  static readonly #only = new RowFailure();

  /** Abandons the row. */
  static raise(reason: string): never {
    RowFailure.#only.reason = reason;
    throw RowFailure.#only;
  }
}

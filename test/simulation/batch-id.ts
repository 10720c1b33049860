// How a simulated batch tells which one it is.

/** Where a batch's id stands in its bytes: the first four of the records section. */
const ID_AT = 61;

/** Which batch this is, by its own bytes. */
export const batchId = (bytes: Uint8Array, at = 0): number =>
  new DataView(bytes.buffer, bytes.byteOffset + at + ID_AT, 4).getUint32(0);

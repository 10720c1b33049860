// What requests cost, as S3 bills them: by the thousand, in two classes; deletions are free. Pure.
// Not for: stored bytes, which the metadata store knows, and traffic, which is free within a region.

export interface Prices {
  /** Dollars per 1,000 requests that write or list. */
  readonly write: number;
  /** Dollars per 1,000 requests that read. */
  readonly read: number;
  /** Of multipart uploads. */
  readonly partBytes: number;
}

/** A body above this goes in parts; S3 itself would take 5 GiB, but then one lost packet costs everything. */
export const MAX_SINGLE_PUT_BYTES = 16 * 1024 * 1024;
/** So many of them at once. */
export const PARALLEL_PARTS = 4;
/** Starting and completing an upload in parts. */
const UPLOAD_REQUESTS = 2;

/** Requests that storing a body of so many bytes takes: one, or its parts with what begins and ends them. */
export function putRequests(bytes: number, partBytes: number): number {
  return bytes > MAX_SINGLE_PUT_BYTES ? Math.ceil(bytes / partBytes) + UPLOAD_REQUESTS : 1;
}

/** Dollars of one operation. A listing counts as one page, which most are. */
export function dollarsOf(
  { operation, bytes }: { readonly operation: string; readonly bytes: number },
  prices: Prices,
): number {
  switch (operation) {
    case 'put':
      return (putRequests(bytes, prices.partBytes) * prices.write) / 1_000;
    case 'list':
      return prices.write / 1_000;
    case 'get':
    case 'head':
      return prices.read / 1_000;
    default:
      return 0;
  }
}

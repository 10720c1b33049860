// Whether a text is an address of a network interface. Not for: sockets.
import { isIP } from 'node:net';

/** True for an IPv4 or IPv6 address in its usual notation. */
export function isIpAddress(text: string): boolean {
  return isIP(text) !== 0;
}

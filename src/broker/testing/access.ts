// Access for handlers that a test calls without a connection.
import { Access } from '../auth/access.ts';
import { ALLOW_ALL, ANONYMOUS, type Authorizer } from '../auth/authorizer.ts';

/** The anonymous client of a listener without authentication. */
export function anybody(authorizer: Authorizer = ALLOW_ALL): Access {
  return new Access(authorizer, { principal: ANONYMOUS, host: '127.0.0.1' });
}

// The HTTP face for the operator commands, with readable errors.
import { FloeError } from '../base/error.ts';
import { certificateFault, clientAuth, type Login } from './client-auth.ts';

export const HTTP_SERVER = '127.0.0.1:8080';

export interface HttpCall {
  readonly server: string;
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly accept?: string;
  readonly body?: unknown;
}

/** The successful response. @throws FloeError with the server's own message otherwise. */
export async function call({
  server,
  path,
  method = 'GET',
  accept = 'application/json',
  body,
}: HttpCall): Promise<Response> {
  const { tls, login } = clientAuth();
  const base = /^https?:\/\//.test(server) ? server : `${tls ? 'https' : 'http'}://${server}`;
  let response: Response;
  try {
    response = await fetch(new URL(path, base), {
      method,
      headers: {
        accept,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(login === undefined ? {} : { authorization: basic(login) }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (caught) {
    const certificate = certificateFault((caught as Error).cause);
    if (certificate !== undefined) throw new FloeError('unauthorized', `${base}: ${certificate}`);
    throw new FloeError(
      'unavailable',
      `nothing answers at ${base}: is Floe running there? (--server HOST:PORT)`,
      {
        cause: caught,
      },
    );
  }
  if (response.ok) return response;
  throw new FloeError(response.status === 404 ? 'not-found' : 'invalid', await messageOf(response));
}

function basic({ user, password }: Login): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

async function messageOf(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const { message, error } = JSON.parse(text) as {
      message?: string;
      error?: string | { message?: string };
    };
    return message ?? (typeof error === 'string' ? error : error?.message) ?? text;
  } catch {
    return `${response.status} ${response.statusText}: ${text}`;
  }
}

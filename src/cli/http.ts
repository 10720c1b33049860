// Starts a fastify server on an address; a taken port is one clear line.
import type { Server } from 'node:http';
import { createServer } from 'node:https';
import type { FastifyInstance } from 'fastify';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import type { TlsFiles } from '../broker/auth/index.ts';
import { type Address, formatAddress } from './address.ts';

export interface HttpServer extends Component {
  /** HOST:PORT as bound. */
  readonly address: string;
}

/** Listens. @throws FloeError `conflict` naming flag and address when the port is taken. */
export async function startHttp(
  flag: string,
  app: FastifyInstance,
  address: Address,
  tls?: TlsFiles,
): Promise<HttpServer> {
  let server: Server;
  try {
    if (tls === undefined) {
      await app.listen({ host: address.host, port: address.port });
      server = app.server;
    } else {
      await app.ready();
      server = await listenTls(app, address, tls);
    }
  } catch (caught) {
    await app.close();
    throw portError(flag, address, caught);
  }
  const { port } = server.address() as { port: number };
  return {
    address: formatAddress({ host: address.host, port }),
    async stop() {
      // Idle keep-alive connections would hold close() up until their clients go.
      server.closeIdleConnections();
      if (tls !== undefined) await new Promise((resolve) => server.close(resolve));
      await app.close();
    },
  };
}

/** The same app behind TLS, with certificates that may be replaced. */
async function listenTls(app: FastifyInstance, address: Address, tls: TlsFiles): Promise<Server> {
  const server = createServer({ ...tls.material }, app.routing);
  tls.onChange((material) => server.setSecureContext(material));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: address.host, port: address.port }, resolve);
  });
  return server as unknown as Server;
}

/** What a failed listen says. */
export function portError(flag: string, address: Address, caught: unknown): FloeError {
  const error = FloeError.from(caught);
  if (error.code !== 'conflict') return error;
  const where = formatAddress(address);
  return new FloeError(
    'conflict',
    `${flag} ${where}: the address is in use; choose another one or stop what listens there`,
    {
      cause: caught,
    },
  );
}
